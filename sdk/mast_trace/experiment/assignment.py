"""The arm of a task in an experiment: a function of names and keys alone, so that anybody can repeat it.

In the design ``hash`` a task has one arm: the SHA-256 of the experiment's name and the task's key decides.
In the design ``pairs`` each task goes through all arms, in an order that the same hash decides.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mast_trace.content import as_text, is_a, well_formed
from mast_trace.fork_safe import lock
from mast_trace.spans.guard import misused

if TYPE_CHECKING:
    from typing_extensions import Self

NONE: Final = "none"
PLACEBO: Final = "placebo"
FEEDBACK: Final = "feedback"
ARMS: Final = (NONE, PLACEBO, FEEDBACK)
"""The arms of an experiment on feedback; the first is the one without any."""
HASH: Final = "hash"
PAIRS: Final = "pairs"
_LONGEST: Final = 200
"""Characters of a key or a name that are kept; of a longer key the hash is."""
_MOST_TASKS: Final = 100_000
"""Most tasks whose runs are counted; beyond them the counts of the earliest are forgotten."""
_CALL: Final = "assign"

_lock = lock()
_counts: OrderedDict[tuple[str, str], int] = OrderedDict()


class Arm(str):
    """The arm of one run: the arm's name, with the experiment and the task that it belongs to.

    Attributes:
        experiment: name of the experiment.
        task: the task's key as text; empty if the key could not be used.
        repetition: number of the run among those of the task, from 0.
        design: ``hash`` or ``pairs``.
    """

    __slots__ = ("design", "experiment", "repetition", "task")

    experiment: str
    task: str
    repetition: int
    design: str

    def __new__(
        cls, name: str, *, experiment: str, task: str, repetition: int = 0, design: str = HASH
    ) -> Self:
        """Make the arm."""
        made = super().__new__(cls, name)
        made.experiment, made.task = experiment, task
        made.repetition, made.design = repetition, design
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return what makes it again, in another process."""
        return (str(self),), {name: getattr(self, name) for name in self.__slots__}


def assign(
    experiment: str,
    *,
    key: Any,
    arms: Sequence[str] = ARMS,
    design: str = HASH,
    repetition: int | None = None,
) -> Arm:
    """Return the arm of a task's next run, such as ``none``, ``placebo`` or ``feedback``.

    The same experiment, key, arms and repetition give the same arm in every process. Give the arms
    in the same order everywhere; the first is the control that the others are compared with.

    Args:
        experiment: name of the experiment.
        key: id of the task: text, a number, or anything that has the same text in every process.
        arms: names of the arms; variants of any kind ("team", "single agent") have their own.
        design: ``hash`` gives each task one arm. ``pairs`` takes each task through all arms in a
            random order, which needs fewer tasks; each run must start with a fresh memory.
        repetition: number of the run among those of the task, from 0. Without it the calls for the
            task in this process are counted; give it where the runs of a task are in several processes.

    Returns:
        The name of the arm, a text. Without a usable key it is the first arm, and the run does
        not count in the experiment.
    """
    names = _names(arms)
    name = _text(experiment)[:_LONGEST]
    if design not in (HASH, PAIRS):
        misused(_CALL, f"design is neither {HASH!r} nor {PAIRS!r}; {HASH!r} is taken")
        design = HASH
    task = key_text(key)
    if not task or not name:
        misused(_CALL, "key or experiment has no text of its own; the first arm is taken")
        return Arm(names[0], experiment=name, task="", design=design)
    number = _number(repetition, name, task)
    arm = arm_of(name, task, names, design=design, repetition=number)
    return Arm(arm, experiment=name, task=task, repetition=number, design=design)


def arm_of(
    experiment: str, task: str, arms: Sequence[str], *, design: str = HASH, repetition: int = 0
) -> str:
    """Return the arm of a run of a task.

    Args:
        experiment: name of the experiment.
        task: text of the task's key.
        arms: names of the arms, in order.
        design: ``hash`` or ``pairs``.
        repetition: number of the run among those of the task, from 0.
    """
    if design == HASH:
        return arms[int.from_bytes(_digest("arm", experiment, task), "big") % len(arms)]
    block, place = divmod(repetition, len(arms))
    order = sorted(arms, key=lambda arm: _digest("order", experiment, task, str(block), arm))
    return order[place]


def key_text(key: Any) -> str:
    """Return a task's key as text; empty if it has none that is the same in every process.

    A key of more than 200 characters, such as the task itself, is replaced by its hash.
    """
    if key is None:
        return ""
    try:
        text = _text(key) if is_a(key, str) else _of_value(key)
    except Exception:  # noqa: BLE001  # keys are values of the program's own, which may do anything
        return ""
    text = well_formed(text).strip()
    if len(text) > _LONGEST:
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    return text


def _of_value(key: Any) -> str:
    if isinstance(key, bytes | bytearray | memoryview):
        return bytes(key).decode("utf-8", "backslashreplace")
    if isinstance(key, set | frozenset):
        return json.dumps(sorted(map(_of_value, key)))
    if isinstance(key, dict | list | tuple):
        return json.dumps(key, sort_keys=True, default=_of_value, ensure_ascii=False)
    kind = type(key)
    if all(getattr(kind, name) is getattr(object, name) for name in ("__str__", "__repr__")):
        return ""  # its text is an address in memory
    return str(key)


def _text(value: Any) -> str:
    return well_formed(as_text(value))


def _names(arms: Any) -> tuple[str, ...]:
    try:
        names = tuple(_text(arm)[:_LONGEST] for arm in ([arms] if is_a(arms, str) else arms))
    except Exception:  # noqa: BLE001  # no names, or an iteration that fails
        names = ()
    if len(names) < 2 or len(set(names)) != len(names) or not all(names):
        misused(_CALL, f"arms are not two or more different names; {', '.join(ARMS)} are taken")
        return ARMS
    return names


def _number(repetition: Any, experiment: str, task: str) -> int:
    if repetition is not None:
        if isinstance(repetition, int) and 0 <= repetition < 2**31:
            return int(repetition)
        misused(_CALL, "repetition is no number from 0 on; the calls are counted instead")
    with _lock:
        number = _counts.pop((experiment, task), 0)
        _counts[experiment, task] = number + 1
        if len(_counts) > _MOST_TASKS:
            _counts.popitem(last=False)
    return number


def _digest(*parts: str) -> bytes:
    text = "\x00".join(("mast-trace", *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
