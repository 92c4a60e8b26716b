"""The plugin of fitting."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mast_trace_dashboards.plugins import CommandReport, Plugin, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mast_trace_collector.storage import Store
    from mast_trace_lab.fit.fit_gain import FitOffer


class Fit(Plugin):
    """The worth of a profile, wherever labels are spoken of."""

    name = "fit"
    templates = "mast_trace_lab.fit"

    def __init__(self) -> None:
        self._offers: WeakKeyDictionary[Store, _Offer] = WeakKeyDictionary()

    def sections(self, page: str, store: Store) -> Sequence[Section]:
        """Return the worth of a profile fitted to the labels; it is measured while the page is sent."""
        if page not in {"judge", "queue"}:
            return ()
        from mast_trace_lab.fit.fit_gain import COMMAND, LABEL

        offer = self._offers.setdefault(store, _Offer(store))
        shown = {"offer": offer.newest, "page": page, "command": COMMAND, "label": LABEL}
        return (Section("_learning.html", shown),)

    def words(self) -> Mapping[str, Callable[..., Any]]:
        """Return the filter of its section."""
        from mast_trace_lab.fit.fit_gain import fit_words

        return {"fit_words": fit_words}

    def reports(self, command: str, store: Store, config: Path | None) -> Sequence[CommandReport]:  # noqa: ARG002
        """Return the worth of a profile fitted to the labels, for `judge agree`."""
        import dataclasses

        from mast_trace_dashboards.cli.output import console
        from mast_trace_judge.config import JudgeConfig
        from mast_trace_judge.store.labels import labels_of
        from mast_trace_judge.version import own_profiles
        from mast_trace_lab.fit.fit_gain import COMMAND, LABEL, fit_offer, fit_words

        with console(stderr=True).status("Measuring what a profile of your own would be worth"):
            profiles = own_profiles(JudgeConfig.load(config))
            offer = fit_offer(store, labels_of(store), profiles)
        next_command = LABEL if offer.missing else COMMAND
        return (CommandReport(dataclasses.asdict(offer), (*fit_words(offer), f"  {next_command}")),)


class _Offer:
    """The gain of a profile fitted to the labels of a store, measured again only after they change."""

    def __init__(self, store: Store) -> None:
        # The store is a key of the dictionary that holds this.
        from weakref import ref

        self._store = ref(store)
        self._measuring = Lock()
        self._found: tuple[int, FitOffer] | None = None

    def newest(self) -> FitOffer:
        from mast_trace_judge.store.labels import labels_of
        from mast_trace_lab.fit.fit_gain import fit_offer

        store = self._store()
        assert store is not None
        labels = labels_of(store)
        key = hash(tuple(labels))
        with self._measuring:
            if self._found is None or self._found[0] != key:
                self._found = key, fit_offer(store, labels)
            return self._found[1]
