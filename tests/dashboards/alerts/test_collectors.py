"""Refused requests are counted over the last ten minutes, from real collectors' metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from mast_trace.exceptions import ConfigurationError, MastTraceError
from mast_trace_collector.collector import Collector
from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.security import Right, new_key
from mast_trace_collector.storage import Store, migrate
from mast_trace_dashboards.alerts.evaluator import Collectors, Evaluator
from mast_trace_dashboards.alerts.rules import DAMAGED, REFUSED, RULES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime
    from pathlib import Path

RULE = next(rule for rule in RULES if rule.query == REFUSED)


@pytest.fixture
async def collector(tmp_path: Path) -> AsyncIterator[Collector]:
    with Store.open(f"chdb://{tmp_path / 'db'}") as store:
        migrate(store)
        made = Collector(CollectorConfig.load(data_dir=tmp_path, http_port=0, grpc_port=0), store)
        await made.start()
        yield made
        await made.stop()


async def refuse(collector: Collector, times: int = 1) -> None:
    """Send what no collector takes."""
    headers = {"content-type": "application/x-protobuf"}
    async with httpx.AsyncClient() as client:
        for _ in range(times):
            url = f"{collector.http_address}/v1/traces"
            answer = await client.post(url, content=b"\xff", headers=headers)
            assert answer.status_code == 400


async def counted(collectors: Collectors, now: float) -> float:
    import asyncio

    rows = await asyncio.to_thread(collectors.refused, now)
    return sum(float(row["Refused"]) for row in rows)


async def test_the_rule_fires_and_resolves(collector: Collector) -> None:
    import asyncio
    from datetime import datetime, timedelta, timezone

    evaluator = Evaluator(
        store=None,  # type: ignore[arg-type]  # this rule asks the collectors alone
        rules=[RULE],
        collectors=Collectors([collector.http_address]),
    )
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)

    async def look(at: datetime) -> list[str]:
        return [change.kind for change in await asyncio.to_thread(evaluator.look, at)]

    assert await look(moment) == []
    await refuse(collector)
    told = [await look(moment + timedelta(minutes=minute)) for minute in range(5, 45, 5)]
    assert [kind for kinds in told for kind in kinds] == ["firing", "resolved"]


async def test_damaged_files_fire_until_they_are_seen(collector: Collector, tmp_path: Path) -> None:
    import asyncio
    import shutil
    from datetime import datetime, timedelta, timezone

    evaluator = Evaluator(
        store=None,  # type: ignore[arg-type]  # this rule asks the collectors alone
        rules=[rule for rule in RULES if rule.query == DAMAGED],
        collectors=Collectors([collector.http_address]),
    )
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)

    async def look(minute: int) -> list[str]:
        at = moment + timedelta(minutes=minute)
        return [change.kind for change in await asyncio.to_thread(evaluator.look, at)]

    assert await look(0) == []
    for folder in ("spool", "spool-logs"):
        (tmp_path / folder / "damaged").mkdir()
        (tmp_path / folder / "damaged" / "a.log").touch()
        (tmp_path / folder / "damaged" / "a.json").touch()
    told = [await look(minute) for minute in (5, 10)]
    assert [change.value for change in evaluator.alerts] == [2.0]
    for folder in ("spool", "spool-logs"):
        shutil.rmtree(tmp_path / folder / "damaged")
    told += [await look(minute) for minute in (15, 20, 25, 30)]
    assert [kind for kinds in told for kind in kinds] == ["firing", "resolved"]


def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="alert_collector_key") as refused:
        Collectors(["http://127.0.0.1:1"], "the-secret\n")
    assert "the-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (None, "it asks for a key: set MAST_TRACE_ALERT_COLLECTOR_KEY"),
        (Right.WRITE, "this key may not read /metrics: set MAST_TRACE_ALERT_COLLECTOR_KEY"),
    ],
)
async def test_a_refused_key_names_its_key(tmp_path: Path, right: Right | None, said: str) -> None:
    metrics, metrics_line = new_key("ops", frozenset({Right.METRICS}))
    other, line = new_key("team", frozenset({right or Right.WRITE}))
    (tmp_path / "keys").write_text(f"{metrics_line}\n{line}\n")
    settings = CollectorConfig.load(
        data_dir=tmp_path, http_port=0, grpc_port=0, keys_file=tmp_path / "keys"
    )
    with Store.open(f"chdb://{tmp_path / 'db'}") as store:
        migrate(store)
        made = Collector(settings, store)
        await made.start()
        try:
            key = other if right else ""
            with pytest.raises(MastTraceError, match=said) as caught:
                await counted(Collectors([made.http_address], key), 0)
            assert "HTTP 40" in str(caught.value)
            assert other not in str(caught.value)
            assert await counted(Collectors([made.http_address], metrics), 0) == 0
        finally:
            await made.stop()


async def test_an_address_of_something_else_is_doubted(collector: Collector) -> None:
    with pytest.raises(MastTraceError, match="OTLP/HTTP address, without a path"):
        await counted(Collectors([f"{collector.http_address}/v1"]), 0)
