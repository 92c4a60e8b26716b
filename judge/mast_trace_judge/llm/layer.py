"""The model layer of the judge: set up once, asked for each run."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from openai import AsyncOpenAI

from mast_trace.exceptions import JudgeError
from mast_trace.urls import check_proxies
from mast_trace_judge.llm.budget import DailyCap, RunBudget, UsageMeter
from mast_trace_judge.llm.endpoint import ModelEndpoint
from mast_trace_judge.llm.interview import Interview, RunContext
from mast_trace_judge.llm.prompts import prompt_of_readings
from mast_trace_judge.llm.protocols import client_options, protocol_of
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry, together
from mast_trace_judge.llm.run_reader import RunReader
from mast_trace_judge.llm.verification import ModelReading, Suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.local.outcome import Outcome
    from mast_trace_judge.store.ledger import Ledger
    from mast_trace_judge.verdict import ModeFinding


def vote(readings: Sequence[ModelReading], problems: Iterable[str] = ()) -> ModelReading:
    """Return the reading on which the others agree.

    The outcome is that of more than half of them, else unknown. A failure mode is reported if at
    least half report it, with the mean of all probabilities, a silent reading counting as 0. The
    weight of a suggested step is the mean over all readings as well.

    Args:
        readings: those that succeeded; at least one.
        problems: errors of the others.
    """
    if len(readings) == 1 and not problems:
        return readings[0]
    surest = max(readings, key=lambda reading: reading.confidence)
    outcome = _majority([reading.outcome for reading in readings])
    return ModelReading(
        outcome=outcome,
        failure_probability=round(fmean(r.failure_probability for r in readings), 4),
        suggestions=_joined(sorted(readings, key=lambda reading: -reading.confidence)),
        undecided=surest.undecided if outcome == "failure" else "",
        confidence=surest.confidence,
        modes=_common_modes(readings),
        problems=tuple(
            dict.fromkeys([*problems, *(each for r in readings for each in r.problems)])
        ),
        models=tuple(dict.fromkeys(model for reading in readings for model in reading.models)),
        voters=tuple(single for reading in readings for single in reading.readings),
    )


def _majority(outcomes: Sequence[Outcome]) -> Outcome:
    outcome, votes = Counter(outcomes).most_common(1)[0]
    return outcome if 2 * votes > len(outcomes) else "unknown"


def _joined(readings: Sequence[ModelReading]) -> tuple[Suggestion, ...]:
    """Return each suggested step once, with its mean weight and the words of the first reading that has it."""
    weights: dict[int, float] = defaultdict(float)
    worded: dict[int, Suggestion] = {}
    for reading in readings:
        for each in reading.suggestions:
            weights[each.step] += each.weight / len(readings)
            worded.setdefault(each.step, each)
    joined = [replace(worded[step], weight=weight) for step, weight in weights.items()]
    return tuple(sorted(joined, key=lambda each: (-each.weight, each.step)))


def _common_modes(readings: Sequence[ModelReading]) -> tuple[ModeFinding, ...]:
    reported: dict[str, list[ModeFinding]] = defaultdict(list)
    for reading in readings:
        for mode in reading.modes:
            reported[mode.code].append(mode)
    common = []
    for modes in reported.values():
        if 2 * len(modes) < len(readings):
            continue
        best = max(modes, key=lambda mode: mode.probability)
        probability = sum(mode.probability for mode in modes) / len(readings)
        common.append(best.model_copy(update={"probability": round(probability, 4)}))
    return tuple(sorted(common, key=lambda mode: (-mode.probability, mode.code)))


class ModelLayer:
    """One endpoint and the models on it that read runs."""

    def __init__(self, config: JudgeConfig, ledger: Ledger, version: str) -> None:
        self._config = config
        self._ledger = ledger
        self._version = version
        self._cap = DailyCap(config.judge_max_usd_per_day, spent_today=ledger.spent_today)
        check_proxies()
        self._client = AsyncOpenAI(**client_options(config))
        limit = AdaptiveLimit(config.judge_concurrency)
        self._endpoints = [
            ModelEndpoint(
                self._client,
                model,
                limit=limit,
                retry=Retry(attempts=config.judge_attempts),
                timeout=config.judge_timeout_seconds,
                temperature=config.judge_temperature,
                effort=config.judge_reasoning_effort,
                max_output_tokens=config.judge_max_output_tokens,
                protocol=protocol_of(config.judge_base_url),
            )
            for model in config.models
        ]

    async def read(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings, meter: UsageMeter
    ) -> ModelReading:
        """Let every model read the run, as often as set, and return the reading on which they agree.

        Args:
            run: the source of the trajectory.
            trajectory: the run.
            local: the findings of the local layers.
            meter: adds up the usage, also where this raises.

        Raises:
            JudgeError: no model could read the run; the text has the reason.
            StorageError: the ledger's database does not answer.
        """
        context = RunContext(
            project=run.project,
            trace_id=run.trace_id,
            version=self._version,
            ledger=self._ledger,
            budget=RunBudget(self._config.judge_max_tokens_per_run),
            cap=self._cap,
            meter=meter,
            answers=await self._ledger.answers(run.trace_id, self._version),
        )
        results = await together(
            self._samples(endpoint, context, trajectory, local) for endpoint in self._endpoints
        )
        reading = _voted(results)
        kind = (run.project, run.framework, reading.name, prompt_of_readings())
        right, cases = await self._ledger.blind_record(kind)
        return replace(reading, right=right, cases=cases)

    def given_up(self, reason: str, began: float) -> None:
        """Let later runs not wait for models that have answered nothing since a reading began, in monotonic seconds."""
        for endpoint in self._endpoints:
            endpoint.given_up(reason, began)

    def interview(
        self, record: str, *, project: str, trace_id: str, tokens: int, ledger: Ledger
    ) -> Interview:
        """Return an interview with the first model about texts that are not one run's.

        The day's cap, the limit of concurrent calls and the knowledge that the endpoint is away are those of the runs.

        Args:
            record: the texts, between fences.
            project: to which the texts belong.
            trace_id: of the run to which the ledger counts the calls.
            tokens: that all questions of the interview may take.
            ledger: records the calls.
        """
        endpoint = self._endpoints[0]
        context = RunContext(
            project=project,
            trace_id=trace_id,
            version=self._version,
            ledger=ledger,
            budget=RunBudget(tokens),
            cap=self._cap,
            meter=UsageMeter(),
        )
        return Interview(endpoint, context, self._config.judge_prices.get(endpoint.model), record)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _samples(
        self,
        endpoint: ModelEndpoint,
        context: RunContext,
        trajectory: Trajectory,
        local: LocalFindings,
    ) -> ModelReading | JudgeError:
        """Let one model read the run as often as set and as the run's tokens allow.

        The others start after the first reading, whose prompts the server has cached then.
        """
        wished = self._config.judge_samples
        first = await self._read(endpoint, context, trajectory, local, 1)
        if wished == 1:
            return first
        affordable = context.budget.left // max(1, context.budget.used)
        made = min(wished, 1 + affordable)
        more = await together(
            self._read(endpoint, context, trajectory, local, sample)
            for sample in range(2, made + 1)
        )
        skipped = (
            f"{endpoint.model} read the run {made} instead of {wished} times: more would exceed "
        )
        told = [] if made == wished else [f"{skipped}the run's {context.budget.limit} tokens"]
        try:
            return _voted([first, *more], told)
        except JudgeError as error:
            return error

    async def _read(
        self,
        endpoint: ModelEndpoint,
        context: RunContext,
        trajectory: Trajectory,
        local: LocalFindings,
        sample: int,
    ) -> ModelReading | JudgeError:
        price = self._config.judge_prices.get(endpoint.model)
        reader = RunReader(endpoint, self._config, context, price, sample)
        try:
            return await reader.read(trajectory, local)
        except JudgeError as error:
            return error


def _voted(
    results: Sequence[ModelReading | JudgeError], problems: Sequence[str] = ()
) -> ModelReading:
    """Return the vote of the readings that succeeded.

    Raises:
        JudgeError: none did; the text has the reason.
    """
    readings = [result for result in results if not isinstance(result, JudgeError)]
    failures = [result for result in results if isinstance(result, JudgeError)]
    if not readings:
        raise failures[0]
    return vote(readings, [*problems, *(str(failure) for failure in failures)])
