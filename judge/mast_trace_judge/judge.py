"""`Judge`: from a run's trajectory to its verdict, in layers of which each is usable alone."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING

from mast_trace.exceptions import JudgeError, StorageError
from mast_trace_judge.assembly import assemble, unscored
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.llm.budget import UsageMeter
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_judge.store.ledger import Ledger, MemoryLedger
from mast_trace_judge.version import judge_version, own_profiles

if TYPE_CHECKING:
    from mast_trace.trajectory import Trajectory
    from mast_trace_collector.storage.runs import RunSummary
    from mast_trace_judge.llm.layer import ModelLayer
    from mast_trace_judge.llm.verification import ModelReading
    from mast_trace_judge.local.layers import LocalFindings
    from mast_trace_judge.verdict import Verdict

_LOG = logging.getLogger(__name__)
_NO_STEPS = "the run has no steps: no message, tool call or model action was recorded"


class Judge:
    """Judges runs; safe to use for any number of them at a time on one event loop.

    Attributes:
        config: its settings.
        version: equal for judges that would say the same of the same run.
        ledger: where the model's calls are written.
    """

    def __init__(self, config: JudgeConfig | None = None, *, ledger: Ledger | None = None) -> None:
        """Set up; nothing is asked yet.

        Args:
            config: from the environment if not given.
            ledger: where the model's calls are written; in memory if not given.

        Raises:
            ConfigurationError: a profile cannot be read.
        """
        self.config = config or JudgeConfig.load()
        self._profiles = own_profiles(self.config)
        self.version = judge_version(self.config, self._profiles)
        self.ledger: Ledger = ledger or MemoryLedger()
        self._layer: ModelLayer | None = None

    @property
    def uses_model(self) -> bool:
        """Whether there is a model beside the local layers."""
        return self.config.uses_model

    async def judge(self, run: RunSummary, trajectory: Trajectory) -> Verdict:
        """Judge a run.

        What the model cannot contribute, because it is away, unreadable or over its budget, is
        said in the verdict's ``status_reason``; the local layers' verdict stands then.

        Raises:
            StorageError: the ledger's database does not answer.
        """
        local = await asyncio.to_thread(self.apply_rules, trajectory)
        if trajectory.steps and self.wants_model(run, local):
            return await self.judge_further(run, trajectory, local)
        return self.without_model(run, trajectory, local)

    def apply_rules(self, trajectory: Trajectory) -> LocalFindings:
        """Apply the local layers, which need no model; takes milliseconds of this thread."""
        return judge_by_rules(trajectory, self._profiles)

    def without_model(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> Verdict:
        """Judge a run by what the local layers found."""
        if not trajectory.steps:
            return unscored(run, self.version, _NO_STEPS)
        return assemble(run, trajectory, local, version=self.version)

    async def judge_further(
        self, run: RunSummary, trajectory: Trajectory, local: LocalFindings
    ) -> Verdict:
        """Let the model read a run that the local layers have been through; see `judge`."""
        usage = UsageMeter()
        reading: ModelReading | str
        try:
            reading = await asyncio.wait_for(
                self._model_layer().read(run, trajectory, local, usage),
                self.config.judge_run_timeout_seconds,
            )
        except (asyncio.TimeoutError, TimeoutError):
            reading = f"the model took longer than {self.config.judge_run_timeout_seconds:g} s"
        except JudgeError as error:
            reading = str(error)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # one run must not end the judge
            _LOG.exception("the model layer failed on run %s", run.trace_id)
            reading = f"the model layer failed: {type(error).__name__}: {error}"
        return assemble(
            run, trajectory, local, version=self.version, reading=reading, usage=usage.total
        )

    def unscored(self, run: RunSummary, error: Exception) -> Verdict:
        """Return the verdict on a run that the local layers could not get through."""
        reason = f"the run could not be judged: {type(error).__name__}: {error}"
        return unscored(run, self.version, reason)

    def wants_model(self, run: RunSummary, local: LocalFindings) -> bool:
        """Whether the model reads this run: always what is at fault, of the rest a sample.

        The sample follows from the run's id, so that every worker and every repetition agree.
        """
        if not self.uses_model:
            return False
        if local.outcome.outcome == "failure" or local.suspect:
            return True
        drawn = int.from_bytes(hashlib.sha256(run.trace_id.encode()).digest()[:8], "big") / 2**64
        return drawn < self.config.judge_sample_rate

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
