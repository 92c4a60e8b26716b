"""Questions to one model about one run: budgeted, recorded in the ledger, never asked twice."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Generic, TypeVar

from mast_trace.exceptions import JudgeError, VerdictUnreadable
from mast_trace_judge.llm.answers import ModelAnswer, parse_answer
from mast_trace_judge.llm.budget import DailyCap, Price, RunBudget, Tokens, UsageMeter
from mast_trace_judge.llm.prompts import prompt
from mast_trace_judge.llm.transcript import clip, estimate_tokens
from mast_trace_judge.store.ledger import JudgeCall, Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mast_trace_judge.llm.endpoint import Completion, ModelEndpoint

A = TypeVar("A", bound="ModelAnswer")

_EXPECTED_OUTPUT = 1200
_ASKED_AGAIN = 1
_SHOWN_OF_UNREADABLE = 2000
_WORD = re.compile(r"\w+")
_LONG_TOKEN = 5
"""Characters of a token where a server counts few of them, as those do that estimate the number by a text's length."""
_SHORTER = (
    "Your last answer was too long and was cut. Keep this one short: one sentence for each text, at most "
    "three errors, and one quote for each."
)


@dataclass
class RunContext:
    """The state that all calls about one run share.

    Attributes:
        answers: those in the ledger, by the hash of the request.
        budget: token budget of the run.
        cap: dollar budget of the day.
        meter: adds up the usage.
    """

    project: str
    trace_id: str
    version: str
    ledger: Ledger
    budget: RunBudget
    cap: DailyCap
    meter: UsageMeter
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Interview:
    """Asks one model about one record.

    Attributes:
        endpoint: of the model.
        context: of the run.
        price: of the model; None if unknown.
        record: the run as text.
        sample: number of the model's reading of the run, from 1 on. Another reading asks the same
            questions again: an answer in the ledger counts for its own reading alone.

    The record precedes every question, so that all questions of a run share the prefix that servers
    cache. Record and question are one message, because some models' templates refuse two messages
    in a row from one side.
    """

    endpoint: ModelEndpoint
    context: RunContext
    price: Price | None
    record: str
    sample: int = 1

    async def ask(self, stage: str, question: str, shape: type[A]) -> A:
        """Ask a question; an unreadable answer is returned to the model once with its fault.

        Raises:
            BudgetExhausted: the run's tokens or the day's dollars do not suffice.
            EndpointUnavailable: no answer is available now.
            PromptTooLong: the prompt exceeds the model's context window.
            VerdictUnreadable: the answer is unreadable, the second time as well.
            JudgeError: the server rejects the request.
        """
        messages = messages_about(self.record, question)
        request_hash = self._hash(messages, shape)
        if request_hash in self.context.answers:
            return parse_answer(self.context.answers[request_hash], shape)
        problem, longer = "", False
        for _ in range(1 + _ASKED_AGAIN):
            completion = await self._complete(stage, messages, shape, request_hash, longer=longer)
            if isinstance(completion, _Read):
                return completion.answer
            problem, longer = completion.problem, completion.is_cut
            if completion.final:
                break
            if longer:
                messages = [*messages[:-1], _with(messages[-1], _SHORTER)]
                continue
            messages = [
                *messages,
                {"role": "assistant", "content": completion.text or "(nothing)"},
                {
                    "role": "user",
                    "content": f"This cannot be read: {problem}. Answer again, with JSON only.",
                },
            ]
        raise VerdictUnreadable(f"{stage}: the model's answer cannot be read: {problem}")

    async def _complete(
        self,
        stage: str,
        messages: list[dict[str, str]],
        shape: type[A],
        request_hash: str,
        *,
        longer: bool,
    ) -> _Read[A] | _Unreadable:
        context = self.context
        estimate = sum(estimate_tokens(message["content"]) for message in messages)
        reserved = estimate + _EXPECTED_OUTPUT
        self.endpoint.check()
        context.cap.check()
        context.budget.reserve(reserved)
        used = Tokens()
        started, began = datetime.now(timezone.utc), time.monotonic()
        outcome: _Read[A] | _Unreadable | None = None
        failure = "the call was cancelled"
        retries = 0
        try:
            completion = await self.endpoint.complete(messages, shape, longer=longer)
            used = _counted(completion, estimate)
            retries = completion.retries
            _check_whole(completion, messages)
            outcome = _read(completion, shape)
        except JudgeError as error:
            failure = str(error)
            raise
        else:
            failure = outcome.problem
            return outcome
        finally:
            context.budget.settle(reserved, used.total)
            cost = self.price.of(used) if self.price else 0.0
            context.cap.add(cost)
            context.meter.add(used, cost)
            readable = isinstance(outcome, _Read)
            await context.ledger.record(
                JudgeCall(
                    project=context.project,
                    trace_id=context.trace_id,
                    judge_version=context.version,
                    stage=stage,
                    model=self.endpoint.model,
                    started_at=started,
                    duration_ms=round((time.monotonic() - began) * 1000),
                    status="ok" if readable else "unreadable" if outcome else "error",
                    error=failure[:1000],
                    retries=retries,
                    input_tokens=used.input,
                    cached_tokens=used.cached,
                    output_tokens=used.output,
                    cost_usd=cost,
                    request_hash=request_hash,
                    sample=self.sample,
                    answer=outcome.text if outcome is not None and readable else "",
                )
            )

    def _hash(self, messages: list[dict[str, str]], shape: type[ModelAnswer]) -> str:
        asked = f"{self.endpoint.model}\0{shape.__name__}\0{self.sample}"
        digest = hashlib.sha256(asked.encode())
        for message in messages:
            digest.update(f"\0{message['role']}\0{message['content']}".encode())
        return digest.hexdigest()


def messages_about(record: str, question: str) -> list[dict[str, str]]:
    """Return the messages that ask a question about a record."""
    return [
        {"role": "system", "content": prompt("system").text},
        {"role": "user", "content": f"{record}\n\n{question}"},
    ]


@dataclass(frozen=True)
class _Read(Generic[A]):
    answer: A
    text: str
    problem: str = ""


@dataclass(frozen=True)
class _Unreadable:
    problem: str
    text: str
    final: bool = False
    is_cut: bool = False


def _read(completion: Completion, shape: type[A]) -> _Read[A] | _Unreadable:
    text = clip(completion.text, _SHOWN_OF_UNREADABLE)
    if completion.problem:
        cut = completion.is_cut
        return _Unreadable(completion.problem, text, final=not cut, is_cut=cut)
    try:
        return _Read(parse_answer(completion.text, shape), completion.text)
    except VerdictUnreadable as error:
        return _Unreadable(str(error), text)


def _with(message: dict[str, str], more: str) -> dict[str, str]:
    return {**message, "content": f"{message['content']}\n\n{more}"}


def _check_whole(completion: Completion, messages: list[dict[str, str]]) -> None:
    """Check that the server has not cut the prompt without a word; a token is a word at most.

    Some servers leave cached tokens out of their count; where there are any, it says nothing.

    Raises:
        JudgeError: it reports fewer tokens than the prompt has words.
    """
    texts = [message["content"] for message in messages]
    words = sum(min(len(_WORD.findall(text)), len(text) // _LONG_TOKEN) for text in texts)
    if 0 < completion.tokens.input < words and not completion.tokens.cached:
        raise JudgeError(
            f"the model's server has cut the prompt: it reports {completion.tokens.input} tokens for {words} words; "
            "set its context length, or judge_window_tokens to what it can read"
        )


def _counted(completion: Completion, estimate: int) -> Tokens:
    """Return the tokens of a completion; estimated if the server reports no usage."""
    if completion.tokens.total:
        return completion.tokens
    return Tokens(input=estimate, output=estimate_tokens(completion.text))
