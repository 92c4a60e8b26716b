"""Sentences of a model in place of the rules': which were accepted, and their use at a site.

Checks of a sentence that a model has written for an operator: it has to be what a rule would have written.

A sentence that tells of the fault, or that holds something of the run, would make a label that says more about the
model than about the fault. The checks are strict, because a refused sentence costs nothing: a rule's takes its
place.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
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
from mast_trace_judge.local.addressing.recognition import addresses_reader, clean
from mast_trace_judge.store.ledger import JudgeCall, Ledger
from mast_trace_lab.confirm.leaks import leaked
from mast_trace_lab.inject.operators.phrases import SENTENCES, Sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from random import Random

    from mast_trace_judge.config import JudgeConfig
    from mast_trace_lab.inject.sites import Change, RecordedAnswer

LONGEST: Final = 200
"""Characters of a sentence at most; those of the rules have up to 65."""
_FEWEST_WORDS: Final = 3
_PLAIN: Final = re.compile(r"[^\W\d_][^\x00-\x1f<>{}\[\]`|\\*#~«»]*", re.UNICODE)
_FOREIGN: Final = re.compile(r"[^\x00-\x7f\u2013\u2014\u2019]")
"""A character that is neither ASCII nor a dash or an apostrophe of print: sentences are English."""
_WORD: Final = re.compile(r"[^\W_]+")
_FIGURE: Final = re.compile(
    r"\d|%|\b(?:zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty"
    r"|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen|half|double|triple)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(
    r"\w[_/@]\w|\w\.\w|://|\b[^\W\d_a-z]{2,}\b|\b\w*[a-z][A-Z]\w*\b"
    # A capital letter where no sentence begins.
    r"|(?<=[\w,;:\u2019'\"-] )(?!I\b)[A-Z]\w*|[\"\u201c\u201d\u201e]"
)
_NOT_NAMES: Final = re.compile(r"\bOK\b")
_ASKS: Final = re.compile(
    r"\?|(?:^|[.,;:!(\u2013\u2014-] ?)(?:(?:and|so|then|ok|okay|well|now) )*"
    r"(?:is|are|am|do|does|did|can|could|shall|will|would|should|has|have|may|might)"
    r" (?:it|this|that|these|those|they|we|you|i|he|she|the|all|everything|there)\b",
    re.IGNORECASE,
)
"""A question, also one without its mark: a clause that begins with its verb."""
_TELLS: Final = re.compile(
    r"\b(?:on purpose|deliberate\w*|intentional\w*|purposely|faults?|faulty|mistak\w*|erroneous\w*|errors?|wrong\w*"
    r"|incorrect\w*|inject\w*|planted|planting|simulat\w*|pretend\w*|fabricat\w*|made[- ]up|fak(?:e|ed|ing)|sabotag\w*"
    r"|fail\w*|mislead\w*|lying|lie|dishonest\w*|role-?play\w*|instructed|asked to|told to|test case|this is a test"
    r"|supposed to|should have|skip\w*|without (?:any )?(?:check|verif)\w*|did not (?:check|verify)"
    r"|unverified|unchecked|phrasing|wording|sentence|paraphras\w*|variation|as an ai|language model|assistant"
    r"|evaluat\w*|annotat\w*|benchmark|ground truth|label\w*)\b",
    re.IGNORECASE,
)
_NO_ERROR: Final = re.compile(
    r"\b(?:no|without|free of|any)\s+(?:(?:obvious|visible|apparent|further)\s+)?(?:errors?|mistakes?)\b",
    re.IGNORECASE,
)
"""Words of an approval that tell of no fault."""
_ORDERS: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b|\byou (?:must|should|shall|have to|need to|are)\b|\bfrom now on\b"
    r"|\b(?:system|assistant|developer|user|judge|reader|grader|auditor)\b|\bplease (?:rate|mark|report|answer|output)\b",
    re.IGNORECASE,
)

ASKED: Final = 8
"""Sentences that a model is asked for, for each operator; more of them are not read."""


def fault_of_sentence(text: str, sentences: Sentences, taken: Iterable[str]) -> str:
    """Return the reason why a sentence cannot stand for those of an operator; empty if it can.

    The model that wrote it has seen nothing of any run, so a figure or a name in it is invented.

    Args:
        text: the sentence.
        sentences: of the operator.
        taken: sentences that were accepted before.
    """
    known = [_words(other) for other in (*sentences.written, *taken)]
    refused = {
        "empty": len(_words(text)) < _FEWEST_WORDS,
        "too long": len(text) > LONGEST,
        "not new": _words(text) in known,
    }
    # Patterns are for texts of bounded length alone.
    short = text[:LONGEST]
    refused |= {
        "not one plain line": clean(short) != short or not _PLAIN.fullmatch(short),
        "a figure or a name": bool(
            _FIGURE.search(short) or _NAME.search(_NOT_NAMES.sub("it", short))
        ),
        "a foreign character": _FOREIGN.search(short) is not None,
        "addresses its reader": addresses_reader(short) or bool(_ORDERS.search(short)),
        "tells of the fault": bool(_TELLS.search(_NO_ERROR.sub("", short))),
        "asks": _ASKS.search(short) is not None,
        "says the opposite": bool(sentences.refuses and sentences.refuses.search(short)),
        "does not say it": not sentences.needs.search(short),
        # Words that deny, doubt or confess are too many to be listed, so the others are.
        "a word outside the list": not sentences.vocabulary.holds(short),
    }
    return next((reason for reason, is_so in refused.items() if is_so), "")


def fault_at_site(text: str, recorded: str, answers: Iterable[str]) -> str:
    """Return the reason why an accepted sentence cannot replace a recorded answer; empty if it can.

    Args:
        text: the sentence.
        recorded: text of the recorded answer.
        answers: right answers of the run, as far as known.
    """
    if _words(text) == _words(recorded):
        return "the recorded text"
    said = f" {' '.join(_words(text))} "
    told = [each for each in answers if each.strip()]
    if any(f" {' '.join(_words(each))} " in said for each in told) or leaked(text, told, ()):
        return "the right answer"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class Checked:
    """The sentences of a model for one operator, after their checks.

    Attributes:
        accepted: those that can stand for the rules', in the model's order.
        refused: number of the others by reason.
    """

    accepted: tuple[str, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True)
class Phrasings:
    """The sentences of a model by operator.

    Attributes:
        model: its name.
        checked: by name of the operator; an operator that is missing uses the rules' sentences.
    """

    model: str
    checked: Mapping[str, Checked] = field(default_factory=dict)

    def applied(self, change: Change, operator: str, site: RecordedAnswer, rng: Random) -> Change:
        """Return a change with a sentence of the model in place of the rule's.

        It is the same change where the operator says nothing, or where no sentence can stand at this site.

        Args:
            change: by the rules.
            operator: name of the operator.
            site: the recorded answer that is replaced.
            rng: chooses the sentence.
        """
        own = self.checked.get(operator)
        if own is None:
            return change
        written = SENTENCES[operator].written
        answers = (site.run.final_answer, site.run.outcome_reason, site.run.expected)
        fit = [
            (number, text)
            for number, text in enumerate(own.accepted)
            if not fault_at_site(text, site.said.content, answers)
        ]
        if not fit:
            return change
        number, text = rng.choice(fit)
        before = change.text.removesuffix(written[change.phrasing])
        return dataclasses.replace(
            change,
            text=before + text,
            phrasing=len(written) + number,
            phrased_by=self.model,
        )


def checked(operator: str, texts: Iterable[str]) -> Checked:
    """Check the sentences of a model for an operator.

    Args:
        operator: name of an operator of `SENTENCES`.
        texts: the sentences; those after `ASKED` are not read.
    """
    sentences = SENTENCES[operator]
    accepted: list[str] = []
    refused: Counter[str] = Counter()
    for text in list(texts)[:ASKED]:
        sentence = text.strip()
        if fault := fault_of_sentence(sentence, sentences, accepted):
            refused[fault] += 1
        else:
            accepted.append(sentence)
    return Checked(tuple(accepted), dict(refused))


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
