"""The model layer of the judge: set up once, asked for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openai import AsyncOpenAI

from mast_trace.exceptions import JudgeError
from mast_trace.urls import check_proxies
from mast_trace_judge.llm.budget import DailyCap, RunBudget, UsageMeter
from mast_trace_judge.llm.concurrency import together
from mast_trace_judge.llm.endpoint import ModelEndpoint
from mast_trace_judge.llm.interview import Interview, RunContext
from mast_trace_judge.llm.panel import vote
from mast_trace_judge.llm.retry import AdaptiveLimit, Retry
from mast_trace_judge.llm.run_reader import RunReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.config import JudgeConfig
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.store.ledger import Ledger


class ModelLayer:
    """One endpoint and the models on it that read runs."""

    def __init__(self, config: JudgeConfig, ledger: Ledger, version: str) -> None:
        self._config = config
        self._ledger = ledger
        self._version = version
        self._cap = DailyCap(config.judge_max_usd_per_day, spent_today=ledger.spent_today)
        check_proxies()
        self._client = AsyncOpenAI(
            # Local servers need no key, but the client requires one.
            api_key=config.judge_api_key.get_secret_value() or "none",
            base_url=config.judge_base_url or None,
            max_retries=0,
            timeout=config.judge_timeout_seconds,
        )
        limit = AdaptiveLimit(config.judge_concurrency)
        self._endpoints = [
            ModelEndpoint(
                self._client,
                model,
                limit=limit,
                retry=Retry(attempts=config.judge_attempts),
                timeout=config.judge_timeout_seconds,
                temperature=config.judge_temperature,
                max_output_tokens=config.judge_max_output_tokens,
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
        return _voted(results)

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
            return _voted([first, *more], told, of_one_model=True)
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
    results: Sequence[ModelReading | JudgeError],
    problems: Sequence[str] = (),
    *,
    of_one_model: bool = False,
) -> ModelReading:
    """Return the vote of the readings that succeeded.

    Raises:
        JudgeError: none did; the text has the reason.
    """
    readings = [result for result in results if not isinstance(result, JudgeError)]
    failures = [result for result in results if isinstance(result, JudgeError)]
    if not readings:
        raise failures[0]
    told = [*problems, *(str(failure) for failure in failures)]
    return vote(readings, told, of_one_model=of_one_model)
