"""Runs of two projects for the tests: one that a visitor may see, and one full of a word that must never show."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from mast_trace_collector.security import ProjectKeys, Right, new_key
from mast_trace_collector.storage.runs import run_summary
from mast_trace_dashboards.web.access import Access
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.store.labels import HumanLabel, save_labels
from mast_trace_judge.store.verdicts import save
from mast_trace_judge.verdict import (
    Candidate,
    DecisiveError,
    Evidence,
    ModeFinding,
    Place,
    RunFacts,
    Verdict,
)
from mast_trace_lab.feedback.experiment import make_plan
from mast_trace_lab.feedback.statistics.plan import ExperimentPlan

if TYPE_CHECKING:
    from pathlib import Path

    from mast_trace_collector.storage import Store

OURS, THEIRS = "ours", "theirs"
CANARY = "canary"
RUN, SECOND = "a" * 32, "b" * 32
THEIR_RUN, THEIR_OTHER = "c" * 32, "d" * 32
T0 = datetime.now(timezone.utc) - timedelta(hours=1)


def door(folder: Path) -> tuple[Access, dict[str, str]]:
    """The access of a view, and what it lets in: the operator's token and keys of both projects."""
    read = frozenset({Right.READ})
    made = {
        "reader": new_key(OURS, read),
        "labeller": new_key(OURS, read | {Right.LABEL}),
        "theirs": new_key(THEIRS, read),
    }
    (folder / "keys").write_text("\n".join(line for _, line in made.values()))
    keys = {"operator": "the operator's", **{who: key for who, (key, _) in made.items()}}
    access = Access(WebConfig.load(web_token=keys["operator"]), ProjectKeys(folder / "keys"))
    return access, keys


def store_ours(store: Store) -> None:
    """Two judged and labelled runs."""
    for trace in (RUN, SECOND):
        _store(store, OURS, trace, "plain", ["planner", "writer"])
    make_plan(store, OURS, ExperimentPlan("shared", workflow="plain"))


def store_theirs(store: Store) -> None:
    """As many of the other project, and spans under the id of our run as well."""
    for trace in (THEIR_RUN, THEIR_OTHER, RUN):
        _store(store, THEIRS, trace, CANARY, [f"{CANARY}-agent", "planner"])
    for name in ("shared", "theirs"):
        make_plan(store, THEIRS, ExperimentPlan(name, workflow=CANARY))


def _store(store: Store, project: str, trace: str, word: str, agents: list[str]) -> None:
    root = _span(project, trace, word, "f" * 16, parent="") | {
        "SpanName": f"invoke_workflow {word}",
        "SpanAttributes": {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": word,
            "gen_ai.conversation.id": f"{word}-session",
            "user.id": f"{word}-user",
            "mast.framework": f"{word}-framework",
            "mast.run.outcome": "failure",
            "mast.run.outcome_reason": f"{word} reason",
            "mast.run.termination_reason": f"{word} end",
        },
    }
    steps = [
        _span(project, trace, word, f"{number:016x}", parent="f" * 16) | {"SpanAttributes": told}
        for number, agent in enumerate(agents)
        for told in (_message(word, agent, number),)
    ]
    tool = _span(project, trace, word, "e" * 16, parent="f" * 16) | {
        "StatusCode": "Error",
        "StatusMessage": f"{word} broke",
        "SpanAttributes": {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": f"{word}-tool",
            "gen_ai.tool.call.result": f"{word} result",
            "gen_ai.agent.name": agents[0],
            "gen_ai.agent.handoff.target.name": f"{word}-target",
            "mast.framework": f"{word}-framework",
        },
    }
    store.insert("otel_traces", [root, *steps, tool])
    log = {"ResourceAttributes": {"mast.project": project}, "LogAttributes": {"a": word}}
    store.insert("otel_logs", [{"TraceId": trace, "Body": word, "Timestamp": T0, **log}])
    save(store, [_verdict(store, project, trace, word, agents[0])])
    save_labels(store, [HumanLabel(trace, f"{word}-ann", "failure", project=project, note=word)])
    call = {"Project": project, "TraceId": trace, "CallId": f"{project} {trace}", "Status": "error"}
    told = {
        "Model": f"{word}-model",
        "Stage": "read",
        "StartedAt": T0,
        "Answer": word,
        "CostUsd": 1.5,
    }
    store.insert("mast_judge_calls", [{**call, **told}])


def _span(project: str, trace: str, word: str, span: str, *, parent: str) -> dict[str, Any]:
    return {
        "TraceId": trace,
        "SpanId": span,
        "ParentSpanId": parent,
        "SpanName": word,
        "Timestamp": T0,
        "Duration": 10**9,
        "ServiceName": f"{word}-service",
        "StatusCode": "Unset",
        "StatusMessage": "",
        "ResourceAttributes": {
            "mast.project": project,
            "word": word,
            "service.version": f"{word}-1.2",
        },
    }


def _message(word: str, agent: str, number: int) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "send_message",
        "mast.framework": f"{word}-framework",
        "mast.message.sender": agent,
        "mast.message.recipients": '["writer"]',
        "mast.message.id": f"m{number}",
        "mast.message.content": f"Step {number} shared text {word}",
    }


def _verdict(store: Store, project: str, trace: str, word: str, agent: str) -> Verdict:
    summary = run_summary(store, trace, project=project)
    assert summary
    quotes = (f"shared text {word}",)
    return Verdict(
        trace_id=trace,
        project=project,
        fingerprint=summary.fingerprint,
        judge_version=f"{word}-v1",
        judged_at=datetime.now(timezone.utc),
        service=f"{word}-service",
        framework=f"{word}-framework",
        name=word,
        run_start=summary.start,
        run_end=summary.end,
        steps=3,
        outcome="failure",
        failure_probability=0.9,
        modes=(
            ModeFinding(
                code="2.6",
                probability=0.9,
                evidence=Evidence.EXACT,
                reason=f"{word} says so",
                steps=(0,),
                quotes=quotes,
            ),
        ),
        decisive=DecisiveError(step=0, agent=agent, probability=0.7, reason=f"{word} misread"),
        look_first=(Place(step=0, agent=agent, basis="record", why=f"{word} misread"),),
        candidates=(Candidate(step=0, agent=agent, probability=0.7),),
        run=RunFacts(
            seen=summary.last_seen,
            spans=summary.spans,
            agents=summary.agents,
            outcome=summary.outcome,
            outcome_reason=summary.outcome_reason,
        ),
    )
