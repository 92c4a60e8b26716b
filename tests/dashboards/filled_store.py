"""A store with rows in all tables that the named queries read, drawn with a seed.

Each column has few possible values, so that every join, filter and threshold meets some: runs of two
projects that share services, judged, judged anew, changed since, replayed, labelled, named, or none of these.
"""

from __future__ import annotations

import random
import re
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from mast_trace.taxonomy import FAILURE_MODES
from mast_trace_collector.storage.facts import RECENT, runs_without_facts, write_facts
from mast_trace_judge.patterns.places import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mast_trace_collector.storage import Store

BEGIN: Final = datetime(2026, 3, 2, tzinfo=timezone.utc)
RUNS: Final = 150
BETWEEN: Final = timedelta(minutes=75)
"""From the start of a run to that of the next one."""
WORSE: Final = 140
"""The number of the first run of a bad end: from here on all fail in many ways."""
END: Final = BEGIN + RUNS * BETWEEN
FIRST, LAST = 24, 100
"""Numbers of runs with whose starts a range begins and ends."""
MIDDLE: Final = 77
"""The number of a run with whose start something begins."""
TWIN: Final = 87
"""The number of two runs of one id and one start, in two projects."""
A_TOOL: Final = timedelta(seconds=21)
"""From the start of a run to that of its first tool."""
PATTERN: Final = re.compile(r"Array\((.+)\)|Nullable\((.+)\)|LowCardinality\((.+)\)")
AGENTS: Final = ("writer", "critic", "planner")
MODELS: Final = ("small", "large")
TOOLS: Final = ("search", "book")
VALUES: Final[dict[str, Sequence[Any]]] = {
    "Agent": (*AGENTS, ""),
    "Annotator": ("ann", "bob"),
    "Arm": ("fix", "keep", "identity"),
    "Author": ("ann", "bob"),
    "Basis": ("record", "rule", "model", "contrast"),
    "ChangedAt": [BEGIN + timedelta(days=day) for day in range(1, 9)],
    "Code": tuple(FAILURE_MODES),
    "DecisiveRule": ("", "loop", "confirmed by replay"),
    "Evidence": ("exact", "heuristic", "model"),
    "Experiment": ("lessons", "hints"),
    "FixSource": ("rule", "model", "person"),
    "Hits": range(3),
    "Level": ("step", "environment"),
    "Measure": ("mode", "step", "agent", "false alarm"),
    "Method": ("local", "llm", "reading"),
    "ExaminedBits": (2**14 - 1, 0b1111111, 0b1111100000000, 0),
    "Mode": (*FAILURE_MODES, ""),
    "Model": MODELS,
    "Name": ("first", "second"),
    "OldVersions": ("1.0", "1.1"),
    "Operator": ("drop", "swap"),
    "Outcome": ("success", "failure", "failure", "unknown", ""),
    "PatternId": ("aa", "bb"),
    "Phase": ("probe", "prove"),
    "PlanId": ("p1", "p2"),
    "Provider": ("", "acme"),
    "Sequence": range(6),
    "Stage": ("read", "name pattern"),
    "State": ("open", "acknowledged", "resolved", "resolved"),
    "Step": range(6),
    "Tool": (*TOOLS, ""),
    "Verdict": ("kept", "repaired"),
    "Version": ("1.0", "1.1", ""),
}
"""Values by the column's name, or by the end of it."""
OF_TABLE: Final[dict[tuple[str, str], Sequence[Any]]] = {
    ("mast_human_labels", "Modes"): tuple(FAILURE_MODES),
    ("mast_human_labels", "Outcome"): ("success", "failure", "failure"),
    ("mast_verdicts", "Outcome"): ("success", "failure", "failure", "unknown"),
}
STATUS: Final[dict[str, Sequence[Any]]] = {
    "mast_confirmations": ("confirmed", "refuted", "systematic"),
    "mast_judge_calls": ("ok", "error"),
    "mast_replays": ("reserved", "done", "failed", "censored"),
}
BANDS: Final = (16, 21, FIRST, 26)
"""Numbers of runs with whose first model calls bands of prices begin and end."""
SECONDS: Final = [(number * 75 + number % 7) * 60 % 86_400 + 14 for number in BANDS]
"""The seconds of a day in which these calls begin."""
EXACT: Final = {7, FIRST, LAST, MIDDLE, TWIN, *BANDS}
EXTRA: Final[dict[str, dict[str, Any]]] = {
    "mast_experiments": {"Plan": '{"arms": ["control", "lessons"]}'},
    "mast_prices": {
        "Bands.Since": [date(1970, 1, 1), date(2026, 3, 4), *[date(1970, 1, 1)] * 3],
        "Bands.Begin": [0, 0, SECONDS[0], SECONDS[2], 0],
        "Bands.End": [86_400, 86_400, SECONDS[1], SECONDS[3], 86_400],
        "Bands.Above": [-1, -1, -1, -1, 999],
    },
}
HITS: Final = (
    {"Code": "1.1", "Agent": "writer", "Peer": "", "Tool": "search", "Template": 7, "Text": "a"},
    {"Code": "1.3", "Agent": "critic", "Peer": "", "Tool": "", "Template": 0, "Text": "b"},
    {"Code": "1.3", "Agent": "critic", "Peer": "writer", "Tool": "", "Template": 5, "Text": "c"},
    {"Code": "2.1", "Agent": "writer", "Peer": "critic", "Tool": "", "Template": 0, "Text": "d"},
    {"Code": "3.2", "Agent": "planner", "Peer": "", "Tool": "book", "Template": 9, "Text": "e"},
)
PATTERNS: Final = {"mast_pattern_names", "mast_pattern_states"}
"""Tables of what is said of patterns."""
"""Hits of which patterns are made."""
BY_TYPE: Final[dict[str, Sequence[Any]]] = {
    "Bool": (True, True, False),
    "Date": (BEGIN.date(),),
    "Decimal": [Decimal(each) for each in (1, 2, 5, 10)],
    "Float": (0.1, 0.49, 0.5, 0.51, 0.75, 0.99),
    "Int": (0, 1, 2, 3, 5, 8),
    "UInt": (0, 1, 2, 3, 5, 8),
    "String": ("a", "b", ""),
}
EMPTY: Final = {"Blind", "ModelStep", "Prompt", "RunKey"}
"""Columns that stay empty, or that the table fills."""
TABLES: Final = {
    "mast_verdicts": 220,
    "mast_pattern_runs": 170,
    "mast_confirmations": 60,
    "mast_replays": 200,
    "mast_human_labels": 60,
    "mast_injections": 40,
    "mast_judge_calls": 160,
    "mast_left_out": 12,
    "mast_pattern_names": 8,
    "mast_pattern_states": 16,
    "mast_prices": 16,
    "mast_selftests": 60,
    "mast_experiments": 4,
    "mast_experiment_looks": 6,
    "mast_lessons": 12,
    "mast_replay_plans": 20,
}
"""Tables that programs write, with numbers of rows."""


def fill(store: Store) -> None:
    """Put rows into all tables of a new store."""
    chance = random.Random(5)
    runs = [_run(chance, number) for number in range(RUNS)]
    runs += [_run(chance, each["number"], twin=each) for each in runs[7::10]]
    for name in ("otel_traces", "otel_logs"):
        rows = [row for run in runs for row in (_spans if name == "otel_traces" else _logs)(run)]
        store.insert(name, rows[::2])
        store.insert(name, rows[1::2])
    known = {
        (row["Project"], row["TraceId"]): row for row in store.query("SELECT * FROM mast_runs")
    }
    for run in runs:
        stored = known[run["Project"], run["TraceId"]]
        run |= {name: stored[name] for name in ("Fingerprint", "ServiceName", "Framework")}
        run |= {"RunSeen": stored["LastSeen"]}
        run |= {f"Run{name}": stored[name] for name in ("Agents", "Outcome", "OutcomeReason")}
    due = runs_without_facts(store, RECENT, since=BEGIN)
    write_facts(
        store, [row for row in due if (int(row["OfTrace"], 16) + (row["OfProject"] == "one")) % 2]
    )
    exact = [run for run in runs if run["number"] in EXACT]
    for table, number in TABLES.items():
        columns = store.query(
            "SELECT name, type FROM system.columns WHERE database = currentDatabase()"
            " AND table = {t:String} AND default_kind NOT IN ('MATERIALIZED', 'ALIAS') ORDER BY position",
            {"t": table},
        )
        kinds = {row["name"]: row["type"] for row in columns if row["name"] not in EMPTY}
        (found,) = store.query(
            "SELECT sorting_key AS Key FROM system.tables WHERE database = currentDatabase()"
            " AND name IN ({t:String}, {t:String} || '_local') AND Key != ''",
            {"t": table},
        )
        drawn = [*exact, *(chance.choice(runs) for _ in range(number - len(exact)))][:number]
        if table in PATTERNS:
            said = store.query(f"SELECT DISTINCT Project, PatternId FROM ({PLACES}) ORDER BY ALL")
            drawn = [run | chance.choice(said) for run in drawn]
        rows = [_row(chance, table, kinds, run) for run in drawn]
        store.insert(table, rows)
        # Each fifth row is written anew, for the reader to choose.
        keys = kinds.keys() & {*found["Key"].split(", "), "RunSeen"}
        store.insert(
            table,
            [
                _row(chance, table, kinds, run) | {key: row[key] for key in keys}
                for run, row in zip(drawn[::5], rows[::5], strict=True)
            ],
        )
    _show(store)
    word = f"1{0:019}failure\nsaid later"
    day = datetime.now(timezone.utc).date() - timedelta(days=1)  # a state of its own
    keys = [{"Project": run["Project"], "TraceId": run["TraceId"]} for run in runs[5::12]]
    store.insert("mast_run_states", [key | {"Day": day, "Said": word} for key in keys])


def _show(store: Store) -> None:
    """Add the verdicts after replays, by the table of effects in docs/understand/decisive-error.md."""
    proved = "isNotNull(c.OriginStep) AND v.Outcome != 'success'"
    refuted = """v.Outcome != 'success' AND isNull(c.OriginStep)
        AND (has(c.Refuted, toInt32(v.DecisiveStep)) OR c.Status IN ('overdetermined', 'diffuse'))"""
    effects = {
        "DecisiveStep": f"multiIf({proved}, toUInt32(c.OriginStep), {refuted}, NULL, v.DecisiveStep)",
        "DecisiveAgent": f"multiIf({proved}, c.OriginAgent, {refuted}, '', v.DecisiveAgent)",
        "DecisiveSpanId": f"multiIf({proved}, c.OriginSpanId, {refuted}, '', v.DecisiveSpanId)",
        "DecisiveRule": f"multiIf({proved}, 'confirmed by replay', {refuted}, '', v.DecisiveRule)",
        "DecisiveReason": f"multiIf({proved}, c.Text, {refuted}, '', v.DecisiveReason)",
        "Calibrated": f"v.Calibrated AND NOT ({proved}) AND empty(c.Refuted)",
        "Confirmation": "c.Status",
        # Some runs were judged again since.
        "JudgedAt": "v.JudgedAt - toIntervalSecond(v.RunKey % 4 = 0)",
        "ShownAt": "now64(6)",
    }
    rows = store.query(
        "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'mast_findings'"
    )
    names = [f"`{row['name']}`" for row in rows]
    values = [effects.get(row["name"], f"v.`{row['name']}`") for row in rows]
    store.command(
        f"INSERT INTO mast_findings ({', '.join(names)}) SELECT {', '.join(values)}"
        " FROM mast_findings AS v FINAL"
        " GLOBAL INNER JOIN (SELECT *, RunKey AS Key FROM mast_confirmations FINAL) AS c"
        " ON c.Key = v.RunKey AND c.Fingerprint = v.Fingerprint"
    )


def start_of(number: int) -> datetime:
    """Return when a run starts."""
    return BEGIN + number * BETWEEN + timedelta(minutes=number % 7)


EDGES: Final = (
    start_of(FIRST),
    *(start_of(LAST) - timedelta(hours=each) for each in (0, 1, 24)),
)
"""Times at which ranges begin and end."""


def _run(chance: random.Random, number: int, twin: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a new run; another project's of equal id, spans' ids and mostly start, if a twin of it is given."""
    start = start_of(number) + timedelta(seconds=bool(twin) and number < TWIN)
    run = {
        "number": number,
        "Project": chance.choice(("one", "two")),
        "TraceId": f"{number + 1:032x}",
        "ServiceName": chance.choice(("shop", "trips", "desk")),
        "Framework": chance.choice(("langgraph", "ag2")),
        "ServiceVersion": chance.choice(("1.0", "1.1", "")),
        "RunStart": start,
        "Start": start,
        "RunEnd": start + timedelta(minutes=5),
        "UserId": chance.choice(("u1", "u2", "")),
        "ConversationId": chance.choice(("c1", "c2", "")),
        "Kind": chance.choice(("", "", "", "replay")),
        "recorded": chance.choice(("success", "failure", "", "")),
        "calls": [
            (chance.choice(AGENTS), chance.choice(MODELS), chance.choice(("acme", "")))
            for _ in range(chance.randint(1, 5))
        ],
        "tokens": [chance.choice((10, 999, 1000, 1001)) for _ in range(5)],
        "sizes": [chance.choice((0, 1, 1, 2)) for _ in range(5)],
        "fails": chance.random() < 0.4,
        "experiment": chance.random() < 0.4,
    }
    if twin:
        run |= {"Project": "two" if twin["Project"] == "one" else "one"}
    if number in EXACT:
        run |= {"Kind": "", "recorded": "failure", "UserId": "u1", "tokens": [10, 10, 10, 10, 10]}
    return run | ({"Kind": "replay"} if number == RUNS - 1 else {})


def _spans(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    number, start = run["number"], run["Start"]
    resource = {
        "mast.project": run["Project"],
        "service.version": run["ServiceVersion"],
        "mast.run.kind": run["Kind"] if number % 2 else "",
    }

    def span(index: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
        error = attributes.pop("error", "")
        given = {name.replace("__", "."): str(each) for name, each in attributes.items() if each}
        return {
            "Timestamp": start + timedelta(seconds=index * 7),
            "TraceId": run["TraceId"],
            "SpanId": f"{number:08x}{index:08x}",
            "ParentSpanId": "" if index == 0 else f"{number:08x}{parent:08x}",
            "SpanName": name,
            "ServiceName": "tools" if number % 9 == 4 and index % 4 == 3 else run["ServiceName"],
            "ResourceAttributes": {key: value for key, value in resource.items() if value},
            "SpanAttributes": {
                "mast.framework": "crewai"
                if number % 9 == 5 and index % 4 == 3
                else run["Framework"],
                **({"error.type": error} if error else {}),
                **given,
            },
            "Duration": 10**9 * ((number + index) % 5 * 5 if index else 280) + 10**6 * index,
            "StatusCode": "Error" if error else "Ok",
            "StatusMessage": f"{error} of {number % 3}" if error else "",
        }

    root: dict[str, Any] = {
        "gen_ai__operation__name": "invoke_workflow",
        "gen_ai__workflow__name": f"job {number % 4}",
        "user__id": run["UserId"],
        "gen_ai__conversation__id": run["ConversationId"],
        "mast__run__kind": run["Kind"],
        "mast__run__outcome": run["recorded"],
        "mast__run__outcome_reason": run["recorded"] and "said so",
        "mast__run__termination_reason": "completed" if number % 5 else "",
    }
    if run["experiment"]:
        root |= {
            "mast__experiment__name": ("lessons", "hints")[number % 2],
            "mast__experiment__arm": ("control", "lessons")[number // 2 % 2],
            "mast__experiment__task": f"t{number % 7}",
            "mast__experiment__repetition": number % 3,
            "mast__feedback__id": "f1",
            "mast__feedback__version": "v1",
        }
    if number % 11 != 6:
        yield span(0, 0, "invoke_workflow", **root)
    index = 1
    calls = zip(run["calls"], run["tokens"], run["sizes"], strict=False)
    for (agent, model, provider), sent, seen in calls:
        turn = index
        said = f"{agent} asks for refund {number}-{index}"
        another = number % 6 == 1
        yield span(
            *(turn, 0, "invoke"),
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name=agent,
            user__id="u0" if another else "",
            gen_ai__conversation__id="c9" if another else "",
        )
        chat = span(
            turn + 1,
            turn,
            "chat",
            gen_ai__operation__name="chat",
            gen_ai__agent__name=agent if seen else "",
            gen_ai__request__model=model,
            gen_ai__provider__name=provider,
            gen_ai__usage__input_tokens=sent,
            gen_ai__usage__output_tokens=sent // 7 + number % 5 * 40,
            gen_ai__usage__cache_read__input_tokens=sent // 3 if index % 2 else 0,
            gen_ai__usage__cache_creation__input_tokens=sent // 5 if index % 3 else 0,
            gen_ai__response__finish_reasons='["tool_calls"]' if index % 2 else "",
            mast__input__message_ids=f'["m{seen}"]' if seen else "",
        )
        yield chat
        if seen == 2:  # recorded by another tool as well, and stored twice
            attributes = chat["SpanAttributes"]
            others = {key: each for key, each in attributes.items() if not key.startswith("mast.")}
            copy = chat | {"SpanId": chat["SpanId"].replace("0", "f", 1), "SpanAttributes": others}
            yield from (chat, copy)
        tool = span(
            turn + 2,
            turn,
            "execute_tool",
            gen_ai__operation__name="execute_tool",
            gen_ai__agent__name="planner" if number % 5 == 2 else agent,
            gen_ai__tool__name=TOOLS[index % 2],
            gen_ai__tool__call__arguments=f'{{"place": "{number % 3}"}}',
            gen_ai__tool__call__result="none" if index % 4 else "a room",
            error="TimeoutError" if run["fails"] and index % 2 else "",
        )
        yield tool | ({"Timestamp": chat["Timestamp"]} if number % 8 == 5 else {})
        yield span(
            turn + 3,
            turn,
            "send_message",
            gen_ai__operation__name="send_message",
            mast__message__sender=agent,
            gen_ai__agent__name="planner" if number % 2 else "",
            mast__message__recipients='["critic"]',
            mast__message__content=said,
            mast__message__performative="inform" if index % 3 == 2 else "",
            mast__next_speaker__selected_by=("", "agent", "model", "manager")[(number + index) % 4],
            gen_ai__agent__handoff__target__name="planner" if index % 3 == 0 else "",
        )
        index += 4


def _logs(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if run["number"] % 3:
        return
    yield {
        "Timestamp": run["RunEnd"],
        "TraceId": run["TraceId"],
        "SpanId": f"{run['number']:08x}{0:08x}",
        "ServiceName": run["ServiceName"],
        "EventName": "gen_ai.evaluation.result",
        "ResourceAttributes": {"mast.project": run["Project"]},
        "LogAttributes": {
            "gen_ai.evaluation.name": ("mast.outcome", "tone")[run["number"] // 3 % 2],
            "gen_ai.evaluation.score.value": f"0.{run['number'] % 10}",
            "gen_ai.evaluation.score.label": ("success", "failure")[run["number"] // 6 % 2],
            "gen_ai.evaluation.explanation": "because",
        },
    }


def _row(
    chance: random.Random, table: str, kinds: dict[str, str], run: dict[str, Any]
) -> dict[str, Any]:
    codes = list(FAILURE_MODES)
    examined = chance.choice((codes, codes[:7], codes[7:]))
    run = run | {"CallId": f"{chance.getrandbits(64):x}", "Examined": examined}
    if chance.random() < 0.15:  # the run has changed since
        run |= {"Fingerprint": "another", "RunSeen": run["RunEnd"]}
    # The runs of some patterns are few, and their outcomes are unknown.
    is_rare = table == "mast_pattern_runs" and run["number"] % 10 == 3
    run |= {"Outcome": ""} if is_rare else {}
    sizes: dict[str, int] = {}
    row: dict[str, Any] = {}
    for name, kind in kinds.items():
        group, dot, _ = name.partition(".")
        if name in EXTRA.get(table, {}):
            row[name] = EXTRA[table][name]
        elif name in run and name != "Start":
            row[name] = run[name]
        elif kind.startswith("Array("):
            size = 5 if table == "mast_prices" else chance.randint(run["number"] >= WORSE, 3)
            size = sizes.setdefault(group, size) if dot else size
            inner = kind.removeprefix("Array(").removesuffix(")")
            row[name] = [_value(chance, table, name, inner, run) for _ in range(size)]
            if group == "Hits":
                hits = [HITS[(run["number"] + place) % len(HITS)] for place in range(size)]
                row[name] = [
                    each.get(name.removeprefix("Hits."), value)
                    for each, value in zip(hits, row[name], strict=True)
                ]
                if name == "Hits.Agent" and is_rare:
                    row[name] = ["planner" for _ in hits]
                if name == "Hits.Text":
                    row[name] = [f"{text} {run['number'] % 2}" for text in row[name]]
        else:
            row[name] = _value(chance, table, name, kind, run)
        if name.endswith("At") and (table != "mast_judge_calls" or row[name] not in EDGES):
            row[name] += timedelta(milliseconds=chance.randrange(60_000))  # no two at once
    return row


def _value(chance: random.Random, table: str, name: str, kind: str, run: dict[str, Any]) -> Any:
    while found := PATTERN.fullmatch(kind):
        if found[1]:
            return [_value(chance, table, name, found[1], run)]
        if found[2] and chance.random() < 0.3:
            return None
        kind = found[2] or found[3]
    return chance.choice(_possible(table, name, kind, run))


def _possible(table: str, name: str, kind: str, run: dict[str, Any]) -> Sequence[Any]:
    last = name.rpartition(".")[2]
    if last == "Status":
        return STATUS.get(table, ("ok", "ok", "ok", "ok" if run["number"] in EXACT else "unscored"))
    if name == "Method" and run["number"] % 16 == 8:
        return ("provisional",)  # comes before all others
    fit = (
        values
        for end, values in VALUES.items()
        if last == end
        or (last.endswith(end) and kind == "String")
        or (last == f"{end}s" and name.startswith("Modes"))
    )
    if known := OF_TABLE.get((table, name)) or next(fit, None):
        return known
    if last.endswith("SpanId"):
        return ["", *(f"{run['number']:08x}{index:08x}" for index in (2, 3, 4, 6))]
    if kind.startswith("DateTime"):
        times = [run["RunEnd"] + timedelta(minutes=each) for each in (1, 7, 60, 600)]
        near = [END - timedelta(minutes=30), datetime.now(timezone.utc) - timedelta(days=1)]
        return [*times, *EDGES, *(near if table == "mast_judge_calls" else ())]
    return next(values for begin, values in BY_TYPE.items() if kind.startswith(begin))
