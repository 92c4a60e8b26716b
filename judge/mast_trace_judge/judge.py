"""The `Judge`: turns a run's trajectory into a verdict, in layers that are usable alone."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mast_trace.exceptions import JudgeError, StorageError
from mast_trace.trajectory import StepKind
from mast_trace_judge.assembly import assemble, unscored
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.llm.budget import UsageMeter
from mast_trace_judge.local.contrast import contrasted
from mast_trace_judge.local.layers import LocalFindings, judge_by_rules
from mast_trace_judge.local.relations import relations
from mast_trace_judge.look_first import places
from mast_trace_judge.store.ledger import Ledger, MemoryLedger
from mast_trace_judge.version import judge_version, own_profiles, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.llm.interview import Interview
    from mast_trace_judge.llm.layer import ModelLayer
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.relations import Relations
    from mast_trace_judge.verdict import Verdict

_LOG = logging.getLogger(__name__)
_NO_STEPS = "the run has no steps: no message, tool call or model action was recorded"
_NO_TEXTS = (
    "its texts were not recorded: nothing could be examined. They come with `gen_ai.output.messages` and "
    "`gen_ai.tool.call.result`, which the settings of the program's instrumentation turn on"
)
_FAILED_AT_ONCE = "the run has no steps: {agent} failed before it said or did anything ({error})"


class Judge:
    """Judges runs; safe to use for any number of runs at a time on one event loop.

    Attributes:
        config: its settings.
        version: equal for judges that give the same verdict on the same run beside the same good runs.
        ledger: records the model's calls.
    """

    def __init__(self, config: JudgeConfig | None = None, *, ledger: Ledger | None = None) -> None:
        """Set up the layers; no model is asked yet.

        Args:
            config: from the environment if not given.
            ledger: records the model's calls; in memory if not given.

        Raises:
            ConfigurationError: a profile cannot be read.
        """
        self.config = config or JudgeConfig.load()
        self._profiles = own_profiles(self.config)
        self._rules = rules_of(self.config)
        self.version = judge_version(self.config, self._profiles)
        self.ledger: Ledger = ledger or MemoryLedger()
        self._layer: ModelLayer | None = None

    @property
    def uses_model(self) -> bool:
        """True if there is a model beside the local layers."""
        return self.config.uses_model

    async def judge(self, run: RunSummary, trajectory: Trajectory) -> Verdict:
        """Judge a run.

        If the model cannot contribute, because it is down, unreadable or over its budget, the
        verdict's ``status_reason`` has the reason, and the local layers' verdict is used.

        Raises:
            StorageError: the ledger's database does not answer.
        """
        local = await asyncio.to_thread(self.apply_rules, trajectory)
        if trajectory.steps and self.wants_model(run, local):
            return await self.judge_further(run, trajectory, local)
        return self.without_model(run, trajectory, local)

    def apply_rules(
        self, trajectory: Trajectory, good: Callable[[], Sequence[Relations]] | None = None
    ) -> LocalFindings:
        """Apply the local layers, which need no model; takes milliseconds of this thread.

        Args:
            trajectory: the run.
            good: reads good runs of its program, with which it is compared only if it failed or contradicts itself.

        Raises:
            StorageError: good runs cannot be read.
        """
        found = judge_by_rules(trajectory, self._profiles, self._rules)
        if good is None or not (found.outcome.outcome == "failure" or places(trajectory, found)):
            return found
        return replace(found, contrast=contrasted(relations(trajectory), good()))

    def without_model(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> Verdict:
        """Judge a run by the findings of the local layers.

        A run without steps, or without texts, is judged only where it is known to have failed, with its
        error, or where rules found something all the same.
        """
        if why := _why_unread(trajectory):
            if not local.modes and local.outcome.outcome != "failure":
                return unscored(run, self.version, why)
            local = replace(local, examined=())
        verdict = assemble(run, trajectory, local, version=self.version)
        if not self.config.models or self.uses_model:
            return verdict
        # A model was configured: the reader of the verdict learns why there was none.
        said = [f"without the model: {self.config.why_no_model}", verdict.status_reason]
        return verdict.model_copy(update={"status_reason": "; ".join(filter(None, said))})

    def while_reading(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> Verdict:
        """Return the local verdict that is shown until the model has read the run."""
        verdict = self.without_model(run, trajectory, local)
        said = "; ".join(filter(None, ["a model reads the run", verdict.status_reason]))
        return verdict.model_copy(update={"method": "reading", "status_reason": said})

    async def judge_further(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> Verdict:
        """Let the model read a run after the local layers; see `judge`."""
        usage = UsageMeter()
        reading: ModelReading | str
        seconds, began = self.config.judge_run_timeout_seconds, time.monotonic()
        try:
            layer = self._model_layer()
            reading = await asyncio.wait_for(layer.read(run, trajectory, local, usage), seconds)
        except (asyncio.TimeoutError, TimeoutError):
            reading = f"the model took longer than {seconds:g} s"
            layer.given_up(reading, began)
        except JudgeError as error:
            reading = str(error)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # one run must not end the judge
            _LOG.exception("the model layer failed on run %s", run.trace_id)
            reading = f"the model layer failed: {type(error).__name__}: {error}"
        return await asyncio.to_thread(
            assemble,
            run,
            trajectory,
            local,
            version=self.version,
            reading=reading,
            usage=usage.total,
        )

    def unscored(self, run: RunSummary, error: Exception) -> Verdict:
        """Return the verdict on a run for which the local layers failed."""
        reason = f"the run could not be judged: {type(error).__name__}: {error}"
        return unscored(run, self.version, reason)

    def wants_model(self, run: RunSummary, local: LocalFindings) -> bool:
        """Return whether the model reads this run: always if it seems to have failed, else in a sample.

        The sample is derived from the run's id, so that every worker and every repetition agree.
        """
        if not self.uses_model:
            return False
        if local.outcome.outcome == "failure" or local.suspect:
            return True
        drawn = int.from_bytes(hashlib.sha256(run.trace_id.encode()).digest()[:8], "big") / 2**64
        return drawn < self.config.judge_sample_rate

    def interview(
        self, record: str, *, project: str, trace_id: str, tokens: int, ledger: Ledger
    ) -> Interview:
        """Return an interview with the first model about texts of several runs; see `ModelLayer.interview`.

        Raises:
            JudgeError: a model is set, and its client is not installed.
        """
        return self._model_layer().interview(
            record, project=project, trace_id=trace_id, tokens=tokens, ledger=ledger
        )

    async def aclose(self) -> None:
        """Close the connections to the model's endpoint; may be called twice."""
        layer, self._layer = self._layer, None
        if layer is not None:
            await layer.aclose()

    def _model_layer(self) -> ModelLayer:
        if self._layer is None:
            try:
                from mast_trace_judge.llm.layer import ModelLayer
            except ImportError as error:
                raise JudgeError(
                    f"a model is set, but {error.name} is not installed: pip install "
                    "'mast-trace[judge]'"
                ) from error
            self._layer = ModelLayer(self.config, self.ledger, self.version)
        return self._layer


def _why_unread(trajectory: Trajectory) -> str:
    """Say why there is nothing to judge: an agent failed at once, or nothing was recorded; empty if there is."""
    steps = trajectory.read_steps
    # Arguments of tools tell little where no tool's result was recorded.
    answered = any(step.text for step in steps if step.kind is StepKind.TOOL)
    told = [
        step
        for step in steps
        if step.text.strip()
        or step.content_hash
        or step.error
        or (step.arguments and (answered or step.handoff_to or step.kind is not StepKind.TOOL))
    ]
    if steps:
        return _NO_TEXTS if 2 * len(told) <= len(steps) else ""
    for turn in trajectory.invocations:
        if turn.agent and turn.error is not None:
            return _FAILED_AT_ONCE.format(agent=turn.agent, error=turn.error[:200])
    return _NO_STEPS
