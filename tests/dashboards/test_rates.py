"""Rates, shares, percentiles and kappa of generated verdicts, each computed again here by its definition."""

from __future__ import annotations

import random
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from stores import new_store
from verdict_rows import verdict_row

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_dashboards.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mast_trace_collector.storage import Store

DAY = datetime(2026, 3, 2, tzinfo=timezone.utc)
STARTS = [
    DAY + timedelta(milliseconds=ms)
    for ms in (-86_400_001, -86_400_000, -1, 0, 1, 86_399_999, 86_400_000)
]
CATEGORIES = {"1": "specification", "2": "inter-agent", "3": "verification"}
FEW = ("1.1", "1.3", "2.6", "3.2")


@dataclass(frozen=True)
class Verdict:
    """The newest verdict on a run; an earlier one says the opposite."""

    project: str
    number: int
    start: datetime
    service: str
    framework: str
    agents: tuple[str, ...]
    models: tuple[str, ...]
    recorded: str
    outcome: str
    status: str
    examined: tuple[str, ...]
    modes: tuple[tuple[str, float, str], ...]
    step: int | None
    steps: int
    agent: str
    probability: float
    calibrated: bool
    rule: str
    method: str
    lag: int

    @property
    def known(self) -> str:
        return self.recorded or self.outcome

    def shown(self, at_least: float = 0.5, kinds: Sequence[str] = ("exact", "model")) -> set[str]:
        """Modes that were looked for and are as probable as that."""
        found = {
            code
            for code, probability, kind in self.modes
            if probability >= at_least and kind in kinds
        }
        return found & set(self.examined)


def _verdicts() -> list[Verdict]:
    dice = random.Random(14)

    def some(values: Sequence[str]) -> tuple[str, ...]:
        return tuple(each for each in values if dice.random() < 0.5)

    return [
        Verdict(
            project=project,
            number=number,
            start=dice.choice(STARTS),
            service=dice.choice("ab"),
            framework=dice.choice("xy"),
            agents=some(("writer", "critic")),
            models=some(("large", "small")),
            recorded=dice.choice(("", "", "success", "failure")),
            outcome=dice.choice(("success", "failure", "failure", "unknown")),
            status=dice.choice(("ok", "ok", "ok", "unscored")),
            examined=some((*FEW, "2.2")),
            modes=tuple(
                (code, dice.choice((0.4, 0.5, 0.9)), dice.choice(("exact", "model")))
                for code in dice.choices(FEW, k=dice.randrange(4))
            ),
            step=dice.choice((None, 0, 1, 6, 7, 9, 10)),
            steps=dice.choice((0, 1, 7, 10, 20)),
            agent=dice.choice(("writer", "critic")),
            probability=dice.choice((0.125, 0.25, 0.5, 0.875)),
            calibrated=dice.random() < 0.5,
            rule=dice.choice(("", "loop")),
            method=dice.choice(("local", "llm")),
            lag=dice.choice((-9000, -1000, -1, dice.randrange(1, 90_000))),
        )
        for project, shift in (("one", 0), ("two", 30))
        for number in range(shift, shift + 60)
    ]


VERDICTS = _verdicts()
UNJUDGED = 9
"""Runs of the first project without a verdict, at the midnight."""


def _row(verdict: Verdict, *, newest: bool) -> dict[str, Any]:
    step = verdict.step if newest else 3
    end = verdict.start + timedelta(seconds=5)
    return verdict_row(
        verdict.number,
        verdict.start,
        verdict.modes if newest else ["2.2"],
        Project=verdict.project,
        JudgeVersion="new" if newest else "old",
        JudgedAt=end + timedelta(milliseconds=verdict.lag if newest else verdict.lag - 9000),
        Status=verdict.status if newest else "ok",
        Method=verdict.method,
        ServiceName=verdict.service,
        Framework=verdict.framework,
        RunEnd=end,
        RunSeen=DAY.replace(year=2090),
        RunAgents=list(verdict.agents),
        RunModels=list(verdict.models),
        RunOutcome=verdict.recorded,
        Outcome=verdict.outcome if newest else "failure",
        Examined=list(verdict.examined) if newest else list(FAILURE_MODES),
        Steps=verdict.steps,
        DecisiveStep=step,
        DecisiveAgent="" if step is None else verdict.agent,
        DecisiveProbability=verdict.probability,
        DecisiveRule=verdict.rule,
        Calibrated=verdict.calibrated,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    states = [
        {
            "Project": project,
            "TraceId": f"{number:032x}",
            "Start": start,
            "End": start,
            "ServiceName": service,
            "Framework": framework,
        }
        for project, number, start, service, framework in (
            *((v.project, v.number, v.start, v.service, v.framework) for v in VERDICTS),
            *(("one", 1000 + number, DAY, "a", "x") for number in range(UNJUDGED)),
        )
    ]
    with new_store(tmp_path_factory.mktemp("rates")) as opened:
        opened.insert("mast_run_states", states)
        for newest in (True, False):
            opened.insert("mast_verdicts", [_row(each, newest=newest) for each in VERDICTS])
        yield opened


RANGES: dict[str, dict[str, Any]] = {
    "all": {"projects": ["one", "two"]},
    "a project's day": {"projects": ["one"], "since": DAY, "until": DAY + timedelta(days=1)},
    "a service and a framework": {"services": ["b"], "frameworks": ["x"]},
}


def inside(given: dict[str, Any], runs: Iterable[Verdict] = VERDICTS) -> list[Verdict]:
    """The runs that begin in a range, its first moment included, its last not."""
    return [
        v
        for v in runs
        if v.project in given.get("projects", [v.project])
        and v.service in given.get("services", [v.service])
        and v.framework in given.get("frameworks", [v.framework])
        and given.get("since", v.start) <= v.start
        and not v.start >= given.get("until", DAY.replace(year=2090))
    ]


@pytest.fixture(params=RANGES)
def given(request: pytest.FixtureRequest) -> dict[str, Any]:
    return RANGES[request.param]


@pytest.fixture
def told(given: dict[str, Any]) -> list[Verdict]:
    """The runs of the range, whatever their verdicts say."""
    return inside(given)


@pytest.fixture
def ok(told: list[Verdict]) -> list[Verdict]:
    return [each for each in told if each.status == "ok"]


def rows(store: Store, name: str, given: dict[str, Any], *columns: str) -> list[tuple[Any, ...]]:
    found = QUERIES[name].run(store, **given)
    return [tuple(row[column] for column in columns) for row in found]


def near(value: float | None) -> Any:
    return None if value is None else pytest.approx(value, rel=1e-9)


def share(part: float, whole: float) -> Any:
    return near(part / whole if whole else None)


def of_modes(ok: Sequence[Verdict], **shown: Any) -> dict[str, tuple[int, int, Any]]:
    """Runs that show each mode, runs in which it was looked for, and the share."""
    found = {}
    for code in FAILURE_MODES:
        hits = sum(code in v.shown(**shown) for v in ok)
        looked = sum(code in v.examined for v in ok)
        found[code] = (hits, looked, share(hits, looked))
    return found


@pytest.mark.parametrize("at_least", [0.4, 0.41, 0.5, 0.51, 0.9, 0.91])
@pytest.mark.parametrize("kinds", [[], ["exact"], ["exact", "model"]], ids=len)
def test_modes_from_a_threshold_on(store: Store, at_least: float, kinds: list[str]) -> None:
    ok = [each for each in inside(RANGES["all"]) if each.status == "ok"]
    asked = {**RANGES["all"], "at_least": at_least, "evidence": kinds}
    found = rows(store, "mode_counts", asked, "Code", "Runs", "Examined", "Share", "Judged")
    wanted = of_modes(ok, at_least=at_least, kinds=kinds or ("exact", "model"))
    assert found == [(code, *of, len(ok)) for code, of in wanted.items()]


def test_modes_by_day(store: Store, given: dict[str, Any], ok: list[Verdict]) -> None:
    days = sorted({v.start.date() for v in ok})
    columns = ("Code", "Runs", "Examined", "Share")
    asked = {**given, "bucket": 86_400}
    found = rows(store, "modes_over_time", asked, "Time", *columns)
    by_day = {day: [v for v in ok if v.start.date() == day] for day in days}
    assert [(time.date(), *more) for time, *more in found] == [
        (day, code, *of) for day in days for code, of in of_modes(by_day[day]).items()
    ]
    found = rows(store, "categories_over_time", asked, "Time", "Category", *columns[1:])
    assert [(time.date(), *more) for time, *more in found] == [
        (day, name, hits, looked, share(hits, looked))
        for day in days
        for name, hits, looked in sorted(_category(by_day[day], first) for first in CATEGORIES)
    ]


def _category(ok: Sequence[Verdict], first: str) -> tuple[str, int, int]:
    hits = sum(any(code.startswith(first) for code in v.shown()) for v in ok)
    looked = sum(any(code.startswith(first) for code in v.examined) for v in ok)
    return CATEGORIES[first], hits, looked


@pytest.mark.parametrize("name", ["framework", "service", "agent", "model"])
def test_modes_by_group(store: Store, given: dict[str, Any], ok: list[Verdict], name: str) -> None:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for v in ok:
        for key in {
            "framework": [v.framework],
            "service": [v.service],
            "agent": v.agents,
            "model": v.models,
        }[name]:
            groups[key].append(v)
    found = rows(
        store,
        f"modes_by_{name}",
        given,
        name.title(),
        "Code",
        "Runs",
        "Examined",
        "Share",
        "Judged",
    )
    wanted = [
        (key, code, *numbers, len(of))
        for key, of in groups.items()
        for code, numbers in of_modes(of).items()
        if numbers[0]
    ]
    assert found == sorted(wanted, key=lambda each: (-each[-1], *each[:2]))


def test_pairs_of_modes(store: Store, given: dict[str, Any], ok: list[Verdict]) -> None:
    single, wanted = of_modes(ok), {}
    for one, other in combinations(FAILURE_MODES, 2):
        both = sum({one, other} <= v.shown() for v in ok)
        looked = sum({one, other} <= {*v.examined} for v in ok)
        if both:
            alone = [single[each][0] / single[each][1] for each in (one, other)]
            wanted[one, other] = (both, near(both / looked / alone[0] / alone[1]))
    found = rows(store, "mode_pairs", given, "One", "Other", "Runs", "Lift")
    assert {each[:2]: each[2:] for each in found} == wanted


def test_totals_of_a_range(
    store: Store, given: dict[str, Any], told: list[Verdict], ok: list[Verdict]
) -> None:
    (row,) = QUERIES["summary"].run(store, **given)
    runs = len(told) + UNJUDGED * ("b" not in given.get("services", []))
    _, hits, looked = _category(ok, "1")
    known = Counter(v.outcome for v in ok)
    assert row == {
        "Runs": runs,
        "Judged": len(ok),
        "JudgedShare": share(len(ok), runs),
        "Failures": known["failure"],
        "FailureShare": share(known["failure"], known["failure"] + known["success"]),
        "Violations": hits,
        "ViolationShare": share(hits, looked),
    }


def test_outcomes_by_day(store: Store, given: dict[str, Any], told: list[Verdict]) -> None:
    """A recorded outcome counts whether the run was scored or not, a judged one only of a scored run."""
    wanted: dict[Any, list[str]] = defaultdict(list)
    for v in told:
        wanted[v.start.date()].append(v.recorded or (v.outcome if v.status == "ok" else ""))
    if "b" not in given.get("services", []):
        wanted[DAY.date()] += [""] * UNJUDGED
    judged = Counter(v.start.date() for v in told if v.status == "ok")
    columns = ("Time", "Runs", "Successes", "Failures", "Judged", "FailureShare")
    found = rows(store, "outcomes_over_time", {**given, "bucket": 86_400}, *columns)
    assert [(time.date(), *more) for time, *more in found] == [
        (
            day,
            len(of),
            (good := of.count("success")),
            (bad := of.count("failure")),
            judged[day],
            share(bad, good + bad),
        )
        for day, of in sorted(wanted.items())
    ]


def test_totals_of_all_time(store: Store) -> None:
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for v in VERDICTS:
        if v.status == "ok":
            groups[v.service, v.framework].append(v)
    names = [name.replace("-", "_") for name in CATEGORIES.values()]
    columns = ("Service", "Framework", "Judged", *names, *(f"{name}_examined" for name in names))
    assert rows(store, "judged_totals", {}, *columns) == [
        (
            *key,
            len(of),
            *(_category(of, first)[1] for first in CATEGORIES),
            *(_category(of, first)[2] for first in CATEGORIES),
        )
        for key, of in sorted(groups.items())
    ]


@pytest.mark.parametrize("since", [DAY, DAY - timedelta(days=2)])
def test_a_range_and_as_long_a_time_before(store: Store, since: datetime) -> None:
    """A share that rises from nothing known is no rise."""
    day = timedelta(days=1)
    asked = {"projects": ["two"], "since": since, "until": since + day}
    before = {**asked, "since": since - day, "until": since}
    now, then = (
        of_modes([v for v in inside(each) if v.status == "ok"]) for each in (asked, before)
    )
    columns = ("Code", "Runs", "Examined", "Share", "ExaminedBefore", "ShareBefore", "Rise")
    found = rows(store, "modes_compared", asked, *columns)
    assert sorted(found) == [
        (
            code,
            *now[code],
            *then[code][1:],
            near(now[code][0] / now[code][1] - then[code][0] / then[code][1])
            if now[code][1] and then[code][1]
            else None,
        )
        for code in FAILURE_MODES
    ]
    rises = [-9.0 if row[-1] is None else row[-1] for row in found]
    assert rises == sorted(rises, reverse=True)


def decided(ok: Sequence[Verdict]) -> list[Verdict]:
    return [v for v in ok if v.outcome != "success" and v.step is not None]


def mean(values: Sequence[float]) -> Any:
    return near(statistics.fmean(values) if values else None)


def test_decisive_steps(store: Store, given: dict[str, Any], ok: list[Verdict]) -> None:
    """By tenth of the run, by agent and mode, by rule; how often there is none, and the middle certainty."""
    steps = decided(ok)
    tenths = Counter(
        min(10, 1 + 10 * v.step // max(v.steps, 1)) for v in steps if v.step is not None
    )
    found = rows(store, "decisive_positions", given, "Decile", "Runs", "Decided", "Share")
    assert found == [(n, tenths[n], len(steps), share(tenths[n], len(steps))) for n in range(1, 11)]
    by_agent = {agent: [v for v in steps if v.agent == agent] for agent in ("writer", "critic")}
    found = rows(
        store, "decisive_by_mode", given, "Agent", "Code", "Runs", "Examined", "Share", "AllRuns"
    )
    assert sorted(found) == sorted(
        (agent, code, *numbers, len(of))
        for agent, of in by_agent.items()
        for code, numbers in of_modes(of).items()
        if numbers[0]
    )
    by_rule: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for v in steps:
        by_rule[v.rule or "model", v.method].append(v)
    found = rows(store, "decisive_rules", given, "Rule", "Method", "Runs", "MeanProbability")
    assert {each[:2]: each[2:] for each in found} == {
        key: (len(of), mean([v.probability for v in of if v.calibrated]))
        for key, of in by_rule.items()
    }
    failed = [v for v in ok if v.outcome == "failure"]
    without = sum(v.step is None for v in failed)
    sure = [v.probability for v in ok if v.step is not None and v.calibrated]
    (row,) = QUERIES["decisive_confidence"].run(store, **given)
    assert tuple(row.values()) == (
        len(failed),
        without,
        share(without, len(failed)),
        near(statistics.median(sure) if sure else None),
    )


def test_agents_that_decide(store: Store, given: dict[str, Any], ok: list[Verdict]) -> None:
    acting: dict[tuple[str, str, str], list[Verdict]] = defaultdict(list)
    for v in ok:
        for agent in v.agents if v.known == "failure" else ():
            acting[agent, v.service, v.framework].append(v)
    wanted = {}
    for key, of in acting.items():
        own = [v for v in of if v.agent == key[0] and v.step is not None]
        sure = [v.probability for v in own if v.calibrated]
        modes = sorted({code for v in own for code in v.shown()})
        if own:
            wanted[key] = (
                len(own),
                len(of),
                share(len(own), len(of)),
                len(sure),
                mean(sure),
                modes,
            )
    columns = ("Decided", "Failures", "Share", "AllMeasured", "MeanProbability", "Modes")
    found = rows(store, "decisive_agents", given, "Agent", "ServiceName", "Framework", *columns)
    assert {each[:3]: each[3:] for each in found} == wanted


def test_the_time_to_a_verdict(store: Store, given: dict[str, Any], told: list[Verdict]) -> None:
    """Percentiles between two values lie between them; a verdict before the run's end took no time."""
    lags = [max(0, v.lag) / 1000 for v in told]
    (row,) = QUERIES["judge_lag"].run(store, **given)
    assert (row["Judged"], row["Unscored"]) == tuple(
        sum(v.status == status for v in told) for status in ("ok", "unscored")
    )
    assert row["MedianLagSeconds"] == near(statistics.median(lags))
    assert row["P95LagSeconds"] == near(statistics.quantiles(lags, n=20, method="inclusive")[18])
