"""The conclusion of replays is printed under a verdict, in lists and in JSON, and moves with an export."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from invented_records import contrast

from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.confirmation import Confirmation, SuccessRate
from mast_trace_judge.store import confirmations
from mast_trace_judge.store.confirmations import confirmation_of, record_confirmation
from mast_trace_judge.store.replay_plans import plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI

COUNTS = {"fix_successes": 6, "pairs": 7, "censored": 1, "e_value": 85.5, "effect": 0.857}
CONTRAST = contrast(2, "list_invoices(page=2)\x1b[2J", agent="analyst", **COUNTS)
PROOF = Confirmation(
    status="repairable",
    text="Correcting step 2 turns failure into success; the point of no return was step 3.",
    origin=2,
    origin_agent="analyst",
    point_of_no_return=3,
    point_agent="analyst",
    curve=(
        SuccessRate(step=-1, successes=7, runs=8, low=0.53, high=0.98),
        SuccessRate(step=1, successes=8, runs=8, low=0.68, high=1.0),
        SuccessRate(step=2, successes=2, runs=8, low=0.07, high=0.59),
        SuccessRate(step=3, successes=0, runs=0, low=0.0, high=1.0),
    ),
    contrasts=(CONTRAST,),
    likely=((2, 0.8), (3, 0.15)),
    planned_contrasts=3,
    replays=31,
    live_calls=1120,
    cost_usd=0.125,
)


def record(cli: CLI, confirmation: Confirmation) -> str:
    run = cli.recorded.ids["invoices"]
    with Store.open(cli.recorded.url) as store:
        summary = run_summary(store, run)
        assert summary is not None
        record_confirmation(store, plan_of(store, summary, "{}"), confirmation)
    return run


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_confirmed_run_is_shown_with_its_proof(own_cli: CLI) -> None:
    run = record(own_cli, PROOF)
    status, out, err = own_cli("show", run)
    assert (status, err) == (0, "")
    lines = lines_of(out)
    assert "Decisive error: analyst, step 2 (confirmed by replay)" in lines
    assert [line for line in lines if line.startswith("2 DECISIVE, confirmed")]
    assert "candidate" not in out
    below = lines[lines.index("Confirmed by replay: repairable") :]
    assert below[1] == PROOF.text
    assert "start 7 of 8 (88%, 95%: 53% to 98%)" in below
    assert "step 1 8 of 8 (100%, 95%: 68% to 100%) -12%" in below
    assert "step 2 2 of 8 (25%, 95%: 7% to 59%) +75% decisive" in below
    assert "step 3 no outcome point of no return" in below
    assert (
        "step 2 analyst a person's text 6 of 7 0 of 7 +86% 85.5 of 60 1 confirmed by replay"
        in below
    )
    assert any(
        line.endswith("step 2 (a person's text): list_invoices(page=2)␛[2J") for line in below
    )
    assert any(line.startswith("31 replays, 1,120 live model calls, $0.1250. ") for line in below)


def test_lists_and_json_have_the_proof(own_cli: CLI) -> None:
    run = record(own_cli, PROOF)
    [line] = [line for line in lines_of(own_cli("runs")[1]) if line.startswith(run[:8])]
    assert "analyst, step 2 (repairable by replay)" in line
    [row] = [row for row in own_cli.json("runs") if row["TraceId"] == run]
    assert (row["DecisiveStep"], row["Confirmation"]) == (2, "repairable")
    verdict = own_cli.json("show", run)["verdict"]
    assert verdict["rank"] == "confirmed by replay"
    assert verdict["decisive"]["minimal_fix"] == CONTRAST.fix_text
    assert verdict["confirmation"]["contrasts"][0]["e_value"] == 85.5
    assert own_cli.json("show", own_cli.recorded.ids["trip"])["verdict"]["confirmation"] is None


def test_a_migration_shows_what_an_earlier_version_concluded(
    own_cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists have it where no judge runs, too."""
    monkeypatch.setattr(confirmations, "show", lambda _store, _runs: 0)
    run = record(own_cli, PROOF)
    monkeypatch.undo()

    def concluded() -> str:
        return {row["TraceId"]: row["Confirmation"] for row in own_cli.json("runs")}[run]

    assert concluded() == ""
    assert own_cli("migrate")[0] == 0
    assert concluded() == "repairable"


@pytest.mark.parametrize(
    ("told", "heading", "listed"),
    [
        (
            {"status": "refuted", "refuted": (1, 2, 3, 4)},
            "Refuted by replay",
            "refuted by replay",
        ),
        ({"status": "diffuse"}, "Replays: no single step is decisive", "diffuse by replay"),
        ({"status": "inconclusive", "point_of_no_return": 3}, "Replays are inconclusive", "-"),
    ],
)
def test_others_name_no_step(own_cli: CLI, told: dict[str, Any], heading: str, listed: str) -> None:
    run = record(own_cli, Confirmation(**told, text="So it is.", likely=((2, 0.6), (3, 0.3))))
    out = own_cli("show", run)[1]
    assert heading in lines_of(out)
    assert "DECISIVE" not in out
    assert "in one of these steps: step 2 (60%), step 3 (30%)." in out
    [line] = [line for line in own_cli("runs")[1].splitlines() if line.startswith(run[:8])]
    assert listed in line


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_an_export_takes_the_proof_along(own_cli: CLI, tmp_path: Path, kind: str) -> None:
    run = record(own_cli, PROOF)
    out = tmp_path / f"runs.{kind}"
    own_cli("export", "--format", kind, "--out", str(out))
    own_cli.kept.close()
    url = f"chdb://{tmp_path}/other"
    with Store.open(url) as store:
        migrate(store)
    other = replace(own_cli, recorded=replace(own_cli.recorded, url=url))
    assert "1 confirmation of replays taken over." in other("import", str(out))[1]
    with Store.open(url) as store:
        told = confirmation_of(store, "", run)
        assert told is not None
        assert told == PROOF.model_copy(
            update={"plan_id": "", "origin_span_id": told.origin_span_id}
        )
        assert len(told.origin_span_id) == 16
    assert other("judge", "run", run)[0] == 0
    shown = other("show", run)[1]
    assert "step 2 (confirmed by replay)" in shown
    assert "taken over from a file" in shown
    assert other.json("import", str(out))["confirmations"] == 0
    if kind == "jsonl":  # another project's newer run of the id gets none of it
        lines = map(json.loads, out.read_text("utf-8").splitlines())
        bare = [json.dumps({**each, "project": "two", "verdict": None}) for each in lines]
        (tmp_path / "two.jsonl").write_text("\n".join(bare), "utf-8")
        other("import", str(tmp_path / "two.jsonl"))
        with Store.open(url) as store:
            store.command("TRUNCATE TABLE mast_confirmations")
        assert other.json("import", str(out))["confirmations"] == 1
        with Store.open(url) as store:
            assert confirmation_of(store, "", run) is not None
            assert confirmation_of(store, "two", run) is None


AWAY = {"step": 99}
FORGED: list[tuple[dict[str, Any], str]] = [
    *(
        ({name: value}, "a step that the run does not have")
        for name, value in (
            ("origin", 99),
            ("point_of_no_return", 99),
            ("refuted", [-7]),
            ("curve", [PROOF.curve[0].model_copy(update=AWAY).model_dump()]),
            ("contrasts", [CONTRAST.model_copy(update=AWAY).model_dump()]),
            (
                "contrasts",
                [{**CONTRAST.model_dump(), "also": [{**AWAY, "agent": "a", "source": "b"}]}],
            ),
            ("likely", [[99, 0.5]]),
        )
    ),
    ({"status": "proved"}, "cannot be read at status"),
    ({"live_calls": 2**40}, "a number that is none or too large"),
    ({"cost_usd": float("nan")}, "a number that is none or too large"),
    ({"more": 1}, "cannot be read at more"),
]


def test_a_forged_proof_is_refused(own_cli: CLI, tmp_path: Path) -> None:
    run, out = record(own_cli, PROOF), tmp_path / "runs.jsonl"
    own_cli("export", "--out", str(out))
    runs = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    [forged] = [each for each in runs if each["trace_id"] == run]
    true = forged["verdict"]["confirmation"]
    for changed, problem in FORGED:
        forged["verdict"]["confirmation"] = {**true, **changed}
        out.write_text("\n".join(map(json.dumps, runs)), "utf-8")
        status, _, err = own_cli("import", str(out))
        assert (status, problem in err) == (1, True), err
