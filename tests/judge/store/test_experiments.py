"""Rows of an experiment are its own: not another project's, another experiment's or a replay's."""

from datetime import datetime, timezone

import pytest
from judge.worker.stock_runs import NOW, ROOT, StockSpan, write_stock

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.feedback import store as experiments
from mast_trace_lab.feedback.experiment import make_plan, plan_of
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan
from mast_trace_lab.feedback.store import ExperimentRun, FrozenLesson


def marked(number, *, project="shop", at=0, span="a", **more):
    """A run of the experiment `e` that succeeded, marked by its root."""
    given = {"name": "e", "arm": "none", "task": "7", "repetition": "2", "design": "pairs", **more}
    marks = {f"mast.experiment.{name}": value for name, value in given.items() if "." not in name}
    own = {name: value for name, value in more.items() if "." in name}
    attributes = {**ROOT, "mast.run.outcome": "success", **marks, **own}
    return StockSpan(
        f"{number:032x}",
        span,
        start=NOW + at,
        attributes=attributes,
        resource={"mast.project": project},
    )


def test_the_runs_of_an_experiment(store):
    told = {"mast.feedback.id": "f1", "gen_ai.conversation.id": "c1"}
    write_stock(
        store,
        [
            marked(1, at=5, arm="feedback", **told),
            marked(1, at=6, arm="placebo", span="b"),
            marked(2, at=3, task="8"),
            marked(3, project="bank"),
            marked(2, project="bank", arm="other", **{"mast.run.outcome": "failure"}),
            marked(4, name="another"),
            marked(5, **{"mast.run.kind": "replay"}),
        ],
    )
    first = ExperimentRun(f"{2:032x}", "none", "8", 2, "pairs", "", NOW + 3, "success", "", True)
    second = ExperimentRun(
        f"{1:032x}", "feedback", "7", 2, "pairs", "f1", NOW + 5, "success", "c1", True
    )
    assert experiments.experiment_runs(store, "shop", "e") == [first, second]
    of_bank = experiments.experiment_runs(store, "bank", "e")
    assert sorted((run.trace_id[-1], run.arm, run.outcome) for run in of_bank) == [
        ("2", "other", "failure"),
        ("3", "none", "success"),
    ]
    experiments.save_plan(store, "planned", "e", "{}")
    experiments.save_plan(store, "planned", "another", "{}")
    assert experiments.projects_with(store, "e") == ["bank", "planned", "shop"]


def test_the_first_plan_of_an_experiment_stays(store, monkeypatch):
    """Also where another process has not seen it."""
    assert experiments.plan_text(store, "shop", "e") is None
    assert experiments.save_plan(store, "shop", "e", "first") == "first"
    assert experiments.save_plan(store, "shop", "e", "second") == "first"
    look, blind = experiments.plan_text, [True]
    monkeypatch.setattr(
        experiments, "plan_text", lambda *given: None if blind and blind.pop() else look(*given)
    )
    assert experiments.save_plan(store, "shop", "e", "third") == "first"
    assert experiments.save_plan(store, "bank", "e", "theirs") == "theirs"
    assert experiments.save_plan(store, "shop", "f", "other") == "other"


def test_no_plan_is_made_once_an_experiment_has_runs_or_a_plan(store):
    """Another project's runs of that name, and runs of another experiment, are none of its own."""
    write_stock(store, [marked(1), marked(2, name="another")])
    made = make_plan(store, "bank", ExperimentPlan("e", arms=("none", "placebo")))
    assert plan_of(store, "bank", "e") == made
    for project, told in (("shop", "would come too late"), ("bank", "cannot be changed")):
        with pytest.raises(ConfigurationError, match=told):
            make_plan(store, project, ExperimentPlan("e", arms=("none", "placebo")))


def test_looks_are_counted_by_experiment(store):
    given = {"tasks": 1, "runs": 2, "words": ["better"]}
    names = [("shop", "e"), ("shop", "e"), ("bank", "e"), ("shop", "f"), ("shop", "e")]
    assert [experiments.record_look(store, *each, **given) for each in names] == [1, 2, 1, 1, 3]


def test_frozen_lessons_come_back_in_their_order(store):
    """Those of the version alone."""
    end = datetime(2026, 3, 1, tzinfo=timezone.utc)
    lessons = [FrozenLesson(f"{number:032x}", end, f"lesson {number}") for number in (3, 1, 2)]
    experiments.freeze(store, "shop", "e", "v1", lessons)
    others = [("bank", "e", "v1"), ("shop", "f", "v1"), ("shop", "e", "v2")]
    for number, key in enumerate(others, 7):
        experiments.freeze(store, *key, [FrozenLesson(f"{number:032x}", end, "another's")])
    assert experiments.frozen(store, "shop", "e", "v1") == lessons
    assert [len(experiments.frozen(store, *key)) for key in others] == [1, 1, 1]
