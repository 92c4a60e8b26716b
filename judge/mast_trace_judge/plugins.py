"""Rules of plugins: failure modes that other distributions find, beside those that the judge finds itself."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector import plugins
from mast_trace_judge.verdict import ModeFinding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mast_trace.trajectory import Trajectory

logger = logging.getLogger(__name__)

SECONDS: Final = 2.0
"""The longest that a rule may take for one run. A rule takes milliseconds, and runs wait for it."""
_stopped: set[OwnRule] = set()


@dataclass(frozen=True)
class OwnRule:
    """A rule of a plugin; it is called like a rule of the judge.

    One that raises is left out of that run's verdict and named in the log. One that takes longer than
    `SECONDS` is not asked again by this process: Python cannot end it.

    Attributes:
        name: unique among the rules of plugins, such as ``shop.refund-without-order``.
        version: another one has the runs of a week judged again, as a change of the judge does.
        code: of the failure mode that it finds, such as ``1.1``.
        find: returns its findings on a run, all of this mode.
    """

    name: str
    version: str
    code: str
    find: Callable[[Trajectory], Iterable[ModeFinding]]

    @property
    def is_stopped(self) -> bool:
        """True if it took too long in this process."""
        return self in _stopped

    def __call__(self, trajectory: Trajectory) -> list[ModeFinding]:
        """Return the findings on a run; none where the rule fails."""
        found: list[ModeFinding] = []
        problem: list[BaseException] = []

        def ask() -> None:
            try:
                found.extend(self.checked(trajectory))
            except BaseException as error:  # noqa: BLE001  # of another's code, in a thread of its own
                problem.append(error)

        thread = threading.Thread(target=ask, name=f"rule {self.name}", daemon=True)
        thread.start()
        thread.join(SECONDS)
        if thread.is_alive():
            _stopped.add(self)
            logger.warning(
                "the rule %s took more than %g s: it is not asked again", self.name, SECONDS
            )
            return []
        if problem:
            logger.warning(
                "the rule %s failed on %s: %r", self.name, trajectory.trace_id, problem[0]
            )
            return []
        return found

    def checked(self, trajectory: Trajectory) -> list[ModeFinding]:
        """Return the findings on a run.

        Raises:
            TypeError: one is no finding of the rule's mode.
            ValueError: one has no such probability or step.
            Exception: what the rule raises.
        """
        found = list(self.find(trajectory))
        for each in found:
            if not isinstance(each, ModeFinding) or each.code != self.code:
                raise TypeError(
                    f"it returned {each!r}, which is no ModeFinding of mode {self.code}"
                )
            if not 0 <= each.probability <= 1:
                raise ValueError(f"it gives a probability of {each.probability}")
            if any(not 0 <= step < len(trajectory.steps) for step in each.steps):
                raise ValueError(f"it names steps {each.steps} of {len(trajectory.steps)}")
        return found


class Plugin(plugins.Plugin):
    """A feature that judges runs."""

    def rules(self) -> Sequence[OwnRule]:
        """Return further rules."""
        return ()


def own_rules() -> tuple[OwnRule, ...]:
    """Return the rules of all plugins; one with a taken name or of no failure mode is left out and named."""
    return _rules_of(plugins.installed())


@cache
def _rules_of(_installed: tuple[plugins.Plugin, ...]) -> tuple[OwnRule, ...]:
    found: dict[str, OwnRule] = {}
    for plugin, rules in plugins.answers(Plugin, lambda each: tuple(each.rules())):
        for rule in rules:
            if rule.code not in FAILURE_MODES or found.setdefault(rule.name, rule) is not rule:
                logger.warning("the rule %s of %s is left out", rule.name, plugin.name)
    return tuple(found.values())
