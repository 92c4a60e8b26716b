"""The plugin of self-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_dashboards.plugins import CommandReport, Plugin, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_dashboards.grafana.panels import Panel
    from mast_trace_dashboards.queries.query import Query


class SelfTestPlugin(Plugin):
    """The results of self-tests, in `judge agree` and on the judge's page and dashboard."""

    name = "selftest"
    templates = "mast_trace_lab.selftest"

    def queries(self) -> Iterable[Query]:
        """Return `selftests`."""
        from mast_trace_lab.selftest import queries as selftests

        return (selftests.SELFTESTS,)

    def sections(self, page: str, store: Store) -> Sequence[Section]:
        """Return the newest self-test of each service, for the judge's page."""
        if page != "judge":
            return ()
        from mast_trace_lab.selftest import store as selftests
        from mast_trace_lab.selftest import words as selftest_words

        newest = selftests.newest_of_services(selftests.selftests(store))
        return (Section("_selftests.html", {"tests": list(map(selftest_words.said_of, newest))}),)

    def reports(self, command: str, store: Store, config: Path | None) -> Sequence[CommandReport]:  # noqa: ARG002
        """Return the planted steps that the judge names in each service, for `judge agree`."""
        from mast_trace_lab.selftest import store as selftests
        from mast_trace_lab.selftest import words as selftest_words

        newest = selftests.newest_of_services(selftests.selftests(store))
        lines = tuple(map(selftest_words.planted_steps, newest))
        return (CommandReport(lines, lines),) if lines else ()

    def panels(self) -> Mapping[str, Sequence[Sequence[Panel]]]:
        """Return the table of self-tests, for the judge's dashboard."""
        from mast_trace_lab.selftest.queries import SELF_TEST

        return {"mast-judge": (SELF_TEST,)}
