"""`judge run` judges one run now, `judge work --once` what is finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import CLI


def test_a_run_can_be_judged_without_storing(cli: CLI) -> None:
    run_id = cli.recorded.ids["unjudged"]
    shown = cli.json("judge", "run", run_id, "--no-save")
    assert shown["verdict"]["status"] == "ok"
    assert cli.json("show", run_id)["verdict"] is None


def test_judging_an_unknown_run(cli: CLI) -> None:
    status, _, err = cli("judge", "run", "ffff")
    assert status == 1
    assert "no run's id begins with 'ffff'" in err


def test_judging_prints_steps_and_verdict(cli: CLI) -> None:
    status, out, _ = cli("judge", "run", cli.recorded.ids["invoices"], "--no-save")
    assert status == 0
    assert "No step stands out as the decisive error" in out
    assert "candidate 1: analyst, step 2" in out


def test_work_shares_must_make_sense(cli: CLI) -> None:
    status, _, err = cli("judge", "work", "--once", "--shard", "2/2")
    assert status == 2
    assert "worker_shard" in err
