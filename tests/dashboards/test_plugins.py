"""Plugins of other distributions: what they add, and that one that fails harms nothing else."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from importlib import invalidate_caches
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from code_blocks import PAGES, blocks_of
from typer.main import get_group

from mast_trace.trajectory import Step, StepKind, Trajectory
from mast_trace_collector.plugins import answers, installed
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.cli.app import app, run
from mast_trace_dashboards.commands import COMMANDS
from mast_trace_dashboards.plugins import Plugin, named_queries
from mast_trace_dashboards.web.app import web_app
from mast_trace_judge import plugins as judging
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.local.rules import find_modes
from mast_trace_judge.plugins import own_rules
from mast_trace_judge.verdict import Evidence
from mast_trace_judge.version import judge_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BROKEN = """
from mast_trace_dashboards.plugins import Plugin
from mast_trace_dashboards.queries import QUERIES


class Raises(Plugin):
    name = "raises"

    def commands(self):
        raise RuntimeError("no commands today")

    templates = "package_that_is_not_there"

    def pages(self, web):
        yield from ()
        raise RuntimeError("no pages today, and only when they are read")

    def sections(self, page, store):
        yield from ()
        raise RuntimeError("no sections today")


class Takes(Plugin):
    '''Its names are taken.'''

    name = "takes"

    def commands(self):
        return {"show": None}

    def queries(self):
        yield QUERIES["runs"].__class__("runs", "", "SELECT 1", {}, {})

    def pages(self, web):
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route

        return [Route("/judge", lambda request: PlainTextResponse("taken"))]


    def rules(self):
        import time

        from mast_trace_judge.plugins import OwnRule
        from mast_trace_judge.verdict import Evidence, ModeFinding

        def finds(**changes):
            found = ModeFinding(code="2.2", probability=0.5, evidence=Evidence.HEURISTIC)
            return lambda run: [found.model_copy(update=changes)]

        yield OwnRule("twice", "1", "2.2", lambda run: [])
        yield OwnRule("twice", "2", "2.2", lambda run: 1 / 0)
        yield OwnRule("of-no-mode", "1", "9.9", finds(code="9.9"))
        yield OwnRule("raises", "1", "2.2", lambda run: 1 / 0)
        yield OwnRule("other-mode", "1", "2.1", finds())
        yield OwnRule("step-beyond", "1", "2.2", finds(steps=(9,)))
        yield OwnRule("too-sure", "1", "2.2", finds(probability=7.0))
        yield OwnRule("no-number", "1", "2.2", finds(probability=float("nan")))
        yield OwnRule("no-finding", "1", "2.2", lambda run: ["2.2"])
        yield OwnRule("endless", "1", "2.2", lambda run: time.sleep(60))


class Second(Plugin):
    name = "runs-by-service"


class Shows(Plugin):
    name = "shows"

    def sections(self, page, store):
        from mast_trace_dashboards.plugins import Section

        return [Section("no_such_template.html", {}), Section("_selftests.html", {})]


class NoPlugin:
    name = "something else"
"""
ENTRIES = """[mast_trace.plugins]
a-raises = broken_plugins:Raises
b-takes = broken_plugins:Takes
c-missing = broken_plugins:Gone
d-other = broken_plugins:NoPlugin
e-absent = package_that_was_left_out.plugin:Plugin
f-ours = runs_by_service:RunsByService
g-second = broken_plugins:Second
h-shows = broken_plugins:Shows
"""


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution whose entry points name the plugin of the documentation, and broken ones."""
    (code,) = (
        each.text
        for each in blocks_of(PAGES / "develop" / "plugins.md")
        if each.language == "python"
    )
    (tmp_path / "runs_by_service.py").write_text(code)
    (tmp_path / "broken_plugins.py").write_text(BROKEN)
    about = tmp_path / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    installed.cache_clear()
    yield
    installed.cache_clear()
    for name in ("runs_by_service", "broken_plugins"):
        sys.modules.pop(name, None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"chdb://{tmp_path / 'store'}") as opened:
        migrate(opened)
        opened.insert(
            "otel_traces",
            [{"TraceId": "a" * 32, "SpanId": "b" * 16, "SpanName": "run", "ServiceName": "shop"}],
        )
        yield opened


def get(store: Store, *paths: str) -> list[tuple[int, str]]:
    async def answered() -> list[tuple[int, str]]:
        transport = httpx.ASGITransport(web_app(store))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            found = [await client.get(path) for path in paths]
        return [(each.status_code, each.text) for each in found]

    return asyncio.run(answered())


@pytest.mark.usefixtures("others")
def test_a_plugin_adds_a_page_and_a_link_to_it(store: Store) -> None:
    (judge, busy) = get(store, "/judge", "/busy")
    assert busy == (200, "shop 1")
    assert judge[0] == 200
    assert 'href="/busy"' in judge[1]
    assert "taken" not in judge[1]
    assert judge[1].rstrip().endswith("</html>")


@pytest.mark.usefixtures("others")
def test_a_plugin_adds_a_command(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.close()
    assert run(["busy", "--url", f"chdb://{tmp_path / 'store'}"]) == 0
    assert capsys.readouterr().out == "shop 1\n"


@pytest.mark.usefixtures("others")
def test_a_command_of_ours_stays_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "--help"]) == 0
    assert "decisive error" in capsys.readouterr().out
    assert run(["unknown"]) == 2


@pytest.mark.usefixtures("others")
def test_each_plugin_that_fails_is_named_and_the_absent_one_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "mast_trace_collector.plugins"):
        names = [each.name for each in installed()]
        added = {plugin.name for plugin, _ in answers(Plugin, lambda each: each.commands())}
    ours = ["confirm", "feedback", "fit", "selftest", "teams"]
    assert names == [
        "raises",
        "takes",
        *ours[:1],
        "runs-by-service",
        *ours[1:3],
        "shows",
        *ours[3:],
    ]
    assert added == set(names) - {"raises"}
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert len(caplog.records) == 4
    for each in ("c-missing", "d-other", "broken_plugins:Second", "plugin raises"):
        assert each in told
    assert "left_out.plugin" not in told


@pytest.mark.usefixtures("others")
def test_a_query_whose_name_is_taken_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert named_queries()["runs"].template != "SELECT 1"
    ours = [each.args for each in caplog.records if each.name == "mast_trace_dashboards.plugins"]
    assert ours == [("runs", "takes")]
    assert "selftests" in named_queries()


def test_the_table_of_commands_has_the_words_of_each() -> None:
    """It is written by hand, so that `--help` imports nothing."""
    group = get_group(app)
    for name, each in COMMANDS.items():
        command: Any = group
        for word in name.split():
            command = command.get_command(None, word)
        assert command.help.split("\n\n")[0].replace("\n", " ") == each.help, name


def refunded(*tools: str) -> Trajectory:
    return Trajectory(
        trace_id="a" * 32,
        steps=tuple(
            Step(index=index, kind=StepKind.TOOL, agent="clerk", text="", tool=tool)
            for index, tool in enumerate(tools)
        ),
        finished=True,
    )


def told_of_rules(caplog: pytest.LogCaptureFixture) -> list[object]:
    return [
        record.args[0]
        for record in caplog.records
        if record.name == judging.__name__ and isinstance(record.args, tuple)
    ]


@pytest.mark.usefixtures("others")
def test_a_rule_of_a_plugin_finds_its_mode_and_the_others_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first of one name counts; one that takes too long is not asked again."""
    monkeypatch.setattr(judging, "SECONDS", 0.5)
    monkeypatch.setattr(judging, "_stopped", set())
    with caplog.at_level(logging.WARNING, "mast_trace_judge.plugins"):
        (found,) = (each for each in find_modes(refunded("refund")) if each.code == "1.1")
    assert (found.steps, found.evidence) == ((0,), Evidence.EXACT)
    asked = [
        "raises",
        "other-mode",
        "step-beyond",
        "too-sure",
        "no-number",
        "no-finding",
        "endless",
    ]
    assert told_of_rules(caplog) == ["twice", "of-no-mode", *asked]
    caplog.clear()
    assert "1.1" not in {each.code for each in find_modes(refunded("find_order", "refund"))}
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == asked[
        :-1
    ]


@pytest.mark.usefixtures("others")
def test_another_version_of_a_rule_is_another_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def version() -> str:
        return judge_version(JudgeConfig())

    first = version()
    assert version() == first
    rules = tuple(replace(each, version="2") for each in own_rules())
    monkeypatch.setattr("mast_trace_judge.version.own_rules", lambda: rules)
    assert version() != first
    monkeypatch.setattr("mast_trace_judge.version.own_rules", tuple)
    assert version() != first
