"""Asks the judge's model for other sentences of operators; each answer is kept, so that none is asked for twice."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from mast_trace.exceptions import ConfigurationError, JudgeError, VerdictUnreadable
from mast_trace.urls import check_proxies
from mast_trace_judge.llm.answers import ModelAnswer, parse_answer
from mast_trace_judge.llm.budget import DailyCap, Tokens
from mast_trace_judge.llm.endpoint import Completion, ModelEndpoint
from mast_trace_judge.llm.protocols import client_options, protocol_of
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry
from mast_trace_judge.llm.transcript import estimate_tokens
from mast_trace_judge.store.ledger import JudgeCall, Ledger
from mast_trace_lab.inject.operators.phrases import SENTENCES
from mast_trace_lab.inject.phrasings import ASKED, Phrasings, checked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mast_trace_judge.config import JudgeConfig

STAGE: Final = "phrasings"
"""Name of these calls in the ledger."""
_VERSION: Final = 2
"""Version of the question; another one is asked anew."""
_TRIES: Final = 2
_LONGEST_ANSWER: Final = 4000
"""Output tokens of one answer, reasoning included."""
_SYSTEM: Final = (
    "You write single sentences in the voice of software agents that work together on a task. Write plain, natural "
    "English, as such an agent would say it in the middle of its work. Answer with JSON of the requested shape."
)
_QUESTION: Final = """\
Write {count} different sentences, each of which {says}. An agent says it to its colleagues as if all were well.

Examples that you must not repeat:
{examples}

Each sentence stands alone, in one line of at most 25 words. It holds no number, no name of anything or anybody, no
quotation mark and no question. It uses plain, common words. It does not comment on itself, apologise, or speak to a
reader, sets no condition, and does not say or hint that anything is amiss. Vary wording, length and tone. This is set
{seed} of several; the sets should differ."""


class MorePhrasings(ModelAnswer):
    """Other sentences of an operator."""

    sentences: list[str]


def check_model(config: JudgeConfig) -> None:
    """Check that a model can be asked.

    Raises:
        ConfigurationError: none is set up; the text says what to set.
    """
    if why := config.why_no_model:
        raise ConfigurationError(
            f"--phrasings model asks the judge's model, and {why}. Set MAST_TRACE_JUDGE_MODEL, and OPENAI_API_KEY or "
            "MAST_TRACE_JUDGE_BASE_URL; without the option rules write the sentences"
        )


@dataclass
class PhrasingModel:
    """Asks the judge's first model for sentences, operator by operator.

    Attributes:
        config: of the judge.
        ledger: keeps calls and answers.
        project: to which the calls are charged.
        seed: of the injection; each has sentences of its own.
    """

    config: JudgeConfig
    ledger: Ledger
    project: str
    seed: int

    def ask(self, operators: Iterable[str]) -> Phrasings:
        """Return the checked sentences of the model for those operators that say something.

        At most two calls are made for each, those of earlier processes included, and none where the ledger has its
        answer or another operator says the same. An operator whose answer cannot be read twice uses the rules'
        sentences, now and whenever it is asked for again.

        Raises:
            EndpointUnavailable: no answer is available now.
            BudgetExhausted: the day's cap is reached.
            JudgeError: the server rejects the request.
            StorageError: the ledger's database does not answer.
        """
        names = [each for each in SENTENCES if each in set(operators)]
        return asyncio.run(self._asked(names))

    async def _asked(self, names: list[str]) -> Phrasings:
        from openai import AsyncOpenAI

        model = self.config.models[0]
        answers = dict(await self.ledger.answers("", self._version))
        unread = await self.ledger.unreadable("", self._version)
        cap = DailyCap(self.config.judge_max_usd_per_day, spent_today=self.ledger.spent_today)
        check_proxies()
        found = {}
        async with AsyncOpenAI(**client_options(self.config)) as client:
            endpoint = ModelEndpoint(
                client,
                model,
                limit=AdaptiveLimit(1),
                retry=Retry(attempts=self.config.judge_attempts),
                timeout=self.config.judge_timeout_seconds,
                temperature=self.config.judge_temperature,
                max_output_tokens=min(self.config.judge_max_output_tokens, _LONGEST_ANSWER),
                protocol=protocol_of(self.config.judge_base_url),
            )
            for name in names:
                key = self._hash(name)  # equal for operators that say the same
                if key not in answers:
                    tries = _TRIES - unread.get(key, 0)
                    answers[key] = await self._answer(endpoint, cap, name, tries)
                found[name] = checked(name, _sentences(answers[key]))
        await self.ledger.flush()
        return Phrasings(model, found)

    async def _answer(self, endpoint: ModelEndpoint, cap: DailyCap, name: str, tries: int) -> str:
        """Return a readable answer; empty after as many tries as are left."""
        for _ in range(tries):
            cap.check()
            began, clock = datetime.now(timezone.utc), time.monotonic()
            failure, used, text, retries = "the call was cancelled", Tokens(), "", 0
            try:
                completion = await endpoint.complete(_messages(name, self.seed), MorePhrasings)
                used, retries = _counted(completion, name, self.seed), completion.retries
                failure = completion.problem or _problem(completion.text)
                text = "" if failure else completion.text
            except JudgeError as error:
                failure = str(error)
                raise
            finally:
                price = self.config.judge_prices.get(endpoint.model)
                cost = price.of(used) if price else 0.0
                cap.add(cost)
                await self.ledger.record(
                    JudgeCall(
                        project=self.project,
                        trace_id="",
                        judge_version=self._version,
                        stage=STAGE,
                        model=endpoint.model,
                        started_at=began,
                        duration_ms=round((time.monotonic() - clock) * 1000),
                        status="ok" if text else "unreadable" if used.total else "error",
                        error=failure[:1000],
                        retries=retries,
                        input_tokens=used.input,
                        cached_tokens=used.cached,
                        output_tokens=used.output,
                        cost_usd=cost,
                        request_hash=self._hash(name),
                        answer=text,
                    )
                )
            if text:
                return text
        return ""

    @property
    def _version(self) -> str:
        return f"{STAGE} {_VERSION}, seed {self.seed}"

    def _hash(self, name: str) -> str:
        asked = [f"{self.config.models[0]}\0{self.project}"]
        asked += [f"{each['role']}\0{each['content']}" for each in _messages(name, self.seed)]
        return hashlib.sha256("\0".join(asked).encode()).hexdigest()


def _messages(name: str, seed: int) -> list[dict[str, str]]:
    sentences = SENTENCES[name]
    examples = "\n".join(f"- {each}" for each in sentences.written)
    question = _QUESTION.format(count=ASKED, says=sentences.says, examples=examples, seed=seed)
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]


def _sentences(text: str) -> list[str]:
    return parse_answer(text, MorePhrasings).sentences if text else []


def _problem(text: str) -> str:
    try:
        _sentences(text)
    except VerdictUnreadable as error:
        return str(error)
    return "" if text else "the answer is empty"


def _counted(completion: Completion, name: str, seed: int) -> Tokens:
    """Return the tokens of a completion; estimated if the server reports no usage."""
    if completion.tokens.total:
        return completion.tokens
    asked = sum(estimate_tokens(each["content"]) for each in _messages(name, seed))
    return Tokens(input=asked, output=estimate_tokens(completion.text))
