"""Names, figures and fields of a text, and what a run holds before a step: what rules and contrast compare."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mast_trace.trajectory.vocabulary import loaded
from mast_trace_judge.local.acts import is_tool, name_words
from mast_trace_judge.local.arithmetic import COUNTED, TOO_MANY, derived
from mast_trace_judge.local.dates import DERIVED, LONGEST, as_date, days, is_same
from mast_trace_judge.local.figures import figures
from mast_trace_judge.local.texts import alike

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from mast_trace.trajectory import Step, Trajectory
    from mast_trace_judge.local.dates import Day
    from mast_trace_judge.local.figures import Figure

Several = TypeVar("Several", bound="Collection[Any]")
_LISTED: Final = 60
"""Dates, figures or identifiers above which a text is a listing."""
_REMEMBERED = 20_000
_WORDS = 4096
"""Words whose stems are kept: a run says the same ones again and again."""
_ID = re.compile(r"(?<![\w./:@-])(?=[\w-]*[A-Za-z])[A-Z0-9a-z][\w-]{2,39}(?![\w@]|[./]\w)")
_A_UNIT = re.compile(
    r"[\d-]+(?:[a-z]{1,6}|[A-Z][A-Za-z]{0,2})|[a-z]+-?\d|\d+(?:-[a-z]+)+|[a-z-]+-\d+"
)
COUNT_WORDS = {
    word: number
    for number, word in enumerate(
        [
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ],
        1,
    )
} | {"fourteen": 14, "fortnight": 14, "twenty": 20, "thirty": 30, "sixty": 60, "ninety": 90}
_COUNT = rf"(?P<n>\d{{1,3}}|{'|'.join(COUNT_WORDS)}|a|an|next)"
_PERIOD = re.compile(
    rf"\b{_COUNT}[ -](?:\w+ )?(?P<unit>day|night|week|month|year)s?\b"
    r"|\bnet[ _-]?(?P<net>\d{1,3})\b|\bP?(?P<short>\d{1,3})[dD]\b|(?P<every>\bmonthly\b|\bend of (?:the )?month)"
    r"|(?P<name>days?|nights?|weeks?|months?|years?|period|duration|term)\w*[\"']?\s*[:=]\s*[\"']?(?P<given>\d{1,3})\b",
    re.IGNORECASE,
)
_IN_DAYS = {"week": 7, "month": 30, "year": 365}
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}")
_PAIR = re.compile(r"(?:^|[\s,;{(])(?P<name>[A-Za-z]\w*)[=:]\s?(?P<value>[\w.-]+)")
_IRREGULAR = {
    "given": "give",
    "sent": "send",
    "paid": "pay",
    "sold": "sell",
    "made": "make",
    "drawn": "draw",
    "written": "write",
    "taken": "take",
    "held": "hold",
    "built": "build",
    "bought": "buy",
}
_ENDS = re.compile(r"(?<=[.;!?])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bProf\.)\s+|\n+")
"""Ends of sentences; a title's point is none."""
LEFT_OUT = re.compile(
    r"skip\w*|exclud\w*|except\w*|without|ignor\w*|omit\w*|keep|not|no|from|source|old|previous|current|notes?|comments?"
    r"|reasons?|remarks?"
)
"""Names of arguments that say what is left out, left behind, or why."""
_MOST_FIELDS = 200
_ALIKE = 0.5
"""Similarity of the arguments of a call and of the one that repairs it: a typing error is mended so."""
READS: frozenset[str] = frozenset(
    [
        *("read", "search", "find", "list", "open", "view", "fetch", "lookup", "browse", "get"),
        *("show", "look", "query", "check", "calculate", "compute", "think", "ask", "list"),
        *("select", "count", "load", "describe", "inspect", "retrieve", "scan", "test"),
        *(
            "tests",
            "verify",
            "validate",
            "calc",
            "log",
            "diff",
            "status",
            "info",
            "weather",
            "code",
        ),
        *("python", "shell", "bash", "exec", "execute", "terminal", "sql", "grep", "cat", "ls"),
    ]
)
"""Words of the names of tools that change nothing, or may do anything."""


_DEALS = re.compile(
    r"(?i:book|pay|refund|charge|transfer|buy|purchase|reserve|order|ship|sell|withdraw|deposit"
    r"|place_?(?:an?_?)?(?:order|bid))(?![a-z])"
)
_TELLS = frozenset(
    [
        *(
            "status",
            "state",
            "history",
            "list",
            "info",
            "details",
            "quote",
            "preview",
            "policy",
            "terms",
        ),
        *(
            "rules",
            "price",
            "prices",
            "cost",
            "costs",
            "rate",
            "rates",
            "options",
            "schedule",
            "limit",
        ),
    ]
)
"""Words of tools that only tell how such an act stands, or on which terms."""


@lru_cache(maxsize=512)
def _ids(text: str) -> frozenset[str]:
    found = set()
    for match in _ID.finditer(text):
        name = match[0]
        if sum(sign.isdigit() for sign in name) >= 2 and not _A_UNIT.fullmatch(name):
            found.add(name.lower())
    return frozenset(found - {text[day.start : day.end].lower() for day in days(text)})


def ids(text: str) -> frozenset[str]:
    """Return the identifiers of a text, in lower case: words of letters and at least two digits."""
    return _ids(text[:LONGEST]) if any(sign.isdigit() for sign in text) else frozenset()


def as_written(name: str, text: str) -> str:
    """Return an identifier as a text spells it; see `ids`."""
    found = re.search(re.escape(name), text, re.IGNORECASE)
    return found[0] if found else name


def amounts(text: str) -> list[Figure]:
    """Return the figures of a text that have three digits or more and are part of no date."""
    return [
        each
        for each in outside_dates(text)
        if sum(sign.isdigit() for sign in each.literal) >= 3
        and not all(1900 <= value <= 2100 for value in each.as_one)
    ]


def outside_dates(text: str) -> list[Figure]:
    """Return the figures of a text that are part of no date."""
    inside = in_dates(text)
    return [each for each in figures(text[:LONGEST]) if each.start not in inside]


def in_dates(text: str) -> frozenset[int]:
    """Return the positions of the characters of a text's dates."""
    return frozenset(place for day in days(text) for place in range(day.start, day.end))


@dataclass
class Known:
    """All dates, names and figures that a run holds before some step, as far as anybody asks."""

    trajectory: Trajectory
    dates: set[tuple[int, int, int]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    values: set[float] = field(default_factory=set)
    gaps: set[int] = field(default_factory=set)
    months: set[int] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    _next: int = -1

    def before(self, step: Step) -> Known:
        """Take in the task, the system prompts and all that the steps before one hold."""
        if self._next < 0:
            run = self.trajectory
            self._add(run.task, *prompts(run).values(), *run.human_inputs)
            self._next = 0
        for each in self.trajectory.steps[self._next : step.index]:
            self._add(each.text, each.arguments, each.error or "")
        self._next = max(self._next, step.index)
        return self

    def _add(self, *texts: str) -> None:
        for text in texts:
            if text:
                self.texts.append(text[:LONGEST])
                self.dates |= {reading for day in days(text) for reading in day.readings}
                self.names |= ids(text)
                self.gaps |= _gaps(text[:LONGEST])
                self.months |= _months(text[:LONGEST])
                self.values |= {v for each in outside_dates(text) for v in each.readings}

    def has_day(self, day: Day, told: Collection[int] = ()) -> bool:
        """Return whether a date is known, or follows from known ones and known numbers of days.

        Args:
            day: the date.
            told: more numbers of days.
        """
        if len(self.dates) > TOO_MANY:
            return True
        if any(is_same(one, other) for one in day.readings for other in self.dates):
            return True
        gaps = {gap + more for gap in (*self.gaps, *told) for more in (-1, 0, 1)}
        for one in day.readings:
            for other in self.dates:
                years = one[0] or other[0], other[0] or one[0]
                a, b = as_date((years[0], *one[1:])), as_date((years[1], *other[1:]))
                if a is None or b is None:
                    continue
                gap = abs((a - b).days)
                apart = abs((a.year - b.year) * 12 + a.month - b.month)
                if gap <= 1 or gap in gaps or (a.day == b.day and apart in self.months):
                    return True
        return False

    def periods(self, text: str) -> frozenset[int]:
        """Return the numbers of days in the periods that a text names."""
        return _gaps(text[:LONGEST])

    def miscopied(self, day: Day, meant: Iterable[Day], stated: Iterable[Day]) -> bool:
        """Return whether a date is one of others with its day miscopied: a digit lost or changed, or both exchanged.

        An agent derives dates by rules that no text states, such as the next Tuesday or working day: dates that
        lie a few days or whole weeks apart count as such, and so do all where the run names a period.
        """
        if self.gaps or self.has_day(day):
            return False
        said = {reading[1:] for each in stated for reading in each.readings}
        return any(
            is_same((0, one[1], 1), (0, other[1], 1))
            and (one[0] == other[0] or not one[0] or not other[0])
            and abs(one[2] - other[2]) >= DERIVED
            and (one[2] - other[2]) % 7 != 0
            and other[1:] not in said
            and _is_slip(str(one[2]), str(other[2]))
            for one in day.readings
            for each in meant
            for other in each.readings
        )

    def has_figure(self, figure: Figure) -> bool:
        """Return whether a figure is known, or follows from known ones."""
        if figure.readings & self.values or len(self.values) > TOO_MANY:
            return True
        if any(
            0 < abs(value - each) < 1
            for value in figure.as_one
            if value.is_integer()
            for each in self.values
        ):
            return True  # rounded up or down
        return any(
            derived(value, self.values, COUNTED) or self._is_growth(value)
            for value in figure.as_one
        )

    def _is_growth(self, value: float) -> bool:
        large = [each for each in self.values if abs(each) >= 10][:60]
        return any(
            b and abs(abs(a / b - 1) * 100 - abs(value)) < 0.06 for a in large for b in large
        )


def _periods(text: str) -> Iterator[tuple[int, str]]:
    for match in _PERIOD.finditer(text):
        if match["net"] or match["short"]:
            yield int(match["net"] or match["short"]), "day"
            continue
        if match["every"]:
            yield 1, "month"
            continue
        said = (match["n"] or match["given"]).lower()
        count = int(said) if said.isdigit() else COUNT_WORDS.get(said, 1)
        yield count, (match["unit"] or match["name"]).lower().rstrip("s")


@lru_cache(maxsize=512)
def _gaps(text: str) -> frozenset[int]:
    """Return the numbers of days in the periods that a text names."""
    return frozenset(count * _IN_DAYS.get(unit, 1) for count, unit in _periods(text))


@lru_cache(maxsize=512)
def _months(text: str) -> frozenset[int]:
    units = {"month": 1, "year": 12}
    return frozenset(count * units[unit] for count, unit in _periods(text) if unit in units)


def _is_slip(one: str, other: str) -> bool:
    if len(one) == len(other):
        return one == other[::-1] or (len(one) == 2 and (one[0] == other[0] or one[1] == other[1]))
    return min(one, other, key=len) in max(one, other, key=len)


def few(found: Several) -> Several | tuple[()]:
    """Return dates, figures or identifiers of a text; none of a listing, in which each is near to another one."""
    return found if len(found) <= _LISTED else ()


def owner(step: Step) -> str:
    """Return the agent that asked for a tool call, or acted itself."""
    return step.requested_by or step.agent


def acts(step: Step) -> bool:
    """Return whether a tool ran that changes something, as far as its name tells."""
    return is_tool(step) and bool(step.tool) and not READS & name_words(step.tool)


def transacts(step: Step) -> bool:
    """Return whether a tool ran that moves money, goods or places, as far as its name tells: one time is meant, one value is right."""
    return acts(step) and deals(step.tool)


def deals(tool: str) -> bool:
    """Return whether a tool moves money, goods or places, as far as its name tells."""
    return bool(_DEALS.match(tool)) and not _TELLS & name_words(tool)


def prompts(trajectory: Trajectory) -> dict[str, str]:
    """Return the system prompts that each agent was shown, as one text."""
    found: dict[str, dict[str, None]] = {}
    for call in trajectory.invocations:
        for identity, role in zip(call.input_ids, call.input_roles, strict=False):
            if role == "system" and identity in trajectory.texts:
                found.setdefault(call.agent, {})[identity] = None
    return {
        agent: "\n".join(trajectory.texts[each].content for each in given)
        for agent, given in found.items()
    }


def leaves(value: Any, about: str = "", name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and values of the leaves of JSON.

    Args:
        value: the JSON.
        about: a text in lower case. If it names some of a list's objects, only those count.
        name: of the value.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, about, str(key))
    elif isinstance(value, list):
        named = [each for each in value if isinstance(each, dict) and _is_named(each, about)]
        for each in named or value:
            yield from leaves(each, about, name)
    else:
        yield name, value


def _is_named(row: dict[str, Any], about: str) -> bool:
    texts = [each.lower() for each in row.values() if isinstance(each, str) and len(each) >= 3]
    return bool(about) and bool(texts) and texts[0] in about


def fields(text: str, about: str = "") -> list[tuple[str, Any]]:
    """Return the named values of a result, of JSON or of ``name=value``; see `leaves`."""
    if len(text) > LONGEST:
        return []
    value = loaded(text) if text.lstrip()[:1] in ("{", "[") else None
    if value is not None:
        return list(islice(leaves(value, about.lower()), _MOST_FIELDS))
    return [(m["name"], m["value"]) for m in islice(_PAIR.finditer(text), _MOST_FIELDS)]


def arguments(step: Step) -> dict[str, Any]:
    """Return the arguments of a call by name; none where they are no JSON object."""
    value = loaded(step.arguments) if len(step.arguments) <= LONGEST else None
    return value if isinstance(value, dict) else {}


def repairs(later: Step, call: Step) -> bool:
    """Return whether a call is an earlier one of the same tool again, with its arguments put right."""
    return later.tool == call.tool and alike(_given(later), _given(call), _ALIKE)


def _given(step: Step) -> str:
    """Return the values of a call's arguments as a text; their names are alike in every call of a tool."""
    return " ".join(map(str, arguments(step).values())) or step.arguments


@lru_cache(maxsize=_WORDS)
def stem(word: str) -> str:
    """Return a word in lower case without the endings of English verbs and nouns."""
    word = word.lower()
    word = _IRREGULAR.get(word, word)
    for ending in (
        "ments",
        "ment",
        "ations",
        "ation",
        "ings",
        "ing",
        "ied",
        "ies",
        "ed",
        "es",
        "s",
        "e",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


DRAFTS: Final = frozenset(map(stem, ("dry", "simulate", "preview", "draft")))
"""Words of the names of tools that only show what would be done."""


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words of two letters or more; parts of names count alone."""
    return _stems(text[:_REMEMBERED])


@lru_cache(maxsize=512)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _WORD.findall(text))


def sentences(text: str) -> list[str]:
    """Return the sentences and clauses behind semicolons of a text."""
    return [part.strip() for part in _ENDS.split(text[:LONGEST]) if part.strip()]
