"""Prices of a run's models: given ones first, then one's own, then the maintained table."""

from mast_trace.trajectory import Invocation, Trajectory
from mast_trace_judge.llm.budget import Price
from mast_trace_judge.pricing import OwnPrice
from mast_trace_lab.program.budget import known_prices

GIVEN = Price(input=1, output=2)


def of(*models: str) -> Trajectory:
    calls = tuple(Invocation("model", "", str(n), "", 0, 1, model=m) for n, m in enumerate(models))
    return Trajectory("a" * 32, (), calls)


def test_takes_the_given_price_first() -> None:
    own = {"gpt-5-mini": OwnPrice(input=7, output=8)}
    assert (
        known_prices(of("gpt-5-mini"), given={"gpt-5-mini": GIVEN}, own=own)["gpt-5-mini"] == GIVEN
    )
    assert known_prices(of("gpt-5-mini"), given={}, own=own)["gpt-5-mini"] == Price(
        input=7, output=8
    )


def test_takes_the_maintained_table_for_public_models() -> None:
    """Also for a stronger model that only the replays ask; an unknown model stays without a price."""
    found = known_prices(of("gpt-5-mini", "our-own-model", ""), "gpt-5", given={}, own={})
    assert found.keys() == {"gpt-5-mini", "gpt-5"}
    assert 0 < found["gpt-5-mini"].input < found["gpt-5"].input
    assert 0 < found["gpt-5-mini"].output < found["gpt-5"].output
