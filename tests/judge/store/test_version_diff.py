"""Comparing what two judge versions say."""

from judge.store.verdicts import finding, verdict

from mast_trace_judge.store.verdicts import save
from mast_trace_judge.study.rejudge import diff_versions


def test_tells_what_changed_run_by_run(store):
    save(store, [verdict(1), verdict(2), verdict(3), verdict(4)])
    save(
        store,
        [
            verdict(1, version="v2"),
            verdict(2, version="v2", modes=(finding("2.6"), finding("3.2")), outcome="unknown"),
            verdict(3, version="v2", decisive=None, cost_usd=0.1),
            verdict(4, version="v2", fingerprint="f2"),
            verdict(5, version="v2"),
        ],
    )
    diff = diff_versions(store, "v1", "v2")
    assert (diff.compared, diff.only_before, diff.only_after) == (3, 1, 2)
    second, third = diff.changed
    assert (second.gained, second.lost) == (("3.2",), ("1.3",))
    assert second.outcome == ("failure", "unknown")
    assert third.decisive == (3, None)
    assert (diff.gained, diff.lost) == ({"3.2": 1}, {"1.3": 1})
    assert diff.cost_usd[1] > diff.cost_usd[0] > 0


def test_equal_verdicts_are_no_difference(store):
    save(store, [verdict(1), verdict(1, version="v2", hours=3)])
    assert diff_versions(store, "v1", "v2").changed == ()
