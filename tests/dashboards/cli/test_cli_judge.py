"""`judge run` judges one run now, `judge work --once` what is finished, `judge try` asks one rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import CLI


def test_a_run_can_be_judged_without_storing(cli: CLI) -> None:
    run_id = cli.recorded.ids["unjudged"]
    shown = cli.json("judge", "run", run_id, "--no-save")
    assert shown["verdict"]["status"] == "ok"
    assert cli.json("show", run_id)["verdict"] is None


def test_judging_prints_steps_and_verdict(cli: CLI) -> None:
    out = cli.out("judge", "run", cli.recorded.ids["invoices"], "--no-save")
    assert "Look here first: analyst, step" in out


def test_a_rule_is_tried_on_stored_runs(cli: CLI, tmp_path: Path) -> None:
    """It says what it finds, and changes no verdict."""
    file = tmp_path / "mast-trace.toml"
    file.write_text(
        '[[rules]]\nname = "asked-again"\nmode = "1.3"\nsays = "It asks for more than one page."\n'
        'tool = "list_*"\nat_most = 1\n',
        encoding="utf-8",
    )
    ids = cli.recorded.ids
    before = cli.json("show", ids["invoices"])["verdict"]
    one, other = cli.json(
        *("judge", "try", "asked-again", ids["invoices"], ids["trip"], "--config", str(file))
    )
    assert (one["run"], one["found"]["code"]) == (ids["invoices"], "1.3")
    assert one["found"]["steps"]
    assert other == {"run": ids["trip"], "found": None}
    out = cli.out("judge", "try", "asked-again", ids["invoices"], "last", "--config", str(file))
    assert "1.3 exact, step 2, 3: It asks for more than one page." in out
    assert out.rstrip().endswith("nothing")
    assert cli.json("show", ids["invoices"])["verdict"] == before
    status, _, err = cli("judge", "try", "other", "last", "--config", str(file))
    assert status == 2
    assert "asked-again" in err
