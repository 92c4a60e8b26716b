"""Records of models: how often the step that a model named first was the one that was wrong.

A record is of one model, one prompt, and the failed runs of one project and framework: another model or prompt
begins anew. A model's own word about its sureness is no measure, and neither is a person who has read its word first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mast_trace_judge.intervals import FEWEST_CASES, asserts
from mast_trace_judge.proof import PROVED

if TYPE_CHECKING:
    from mast_trace_collector.storage.store import Store
    from mast_trace_judge.verdict import Verdict

Kind = tuple[str, str, str, str]
"""Project and framework of runs, model, and prompt."""
_COUNTS: Final = """
SELECT v.Project AS Project, v.Framework AS Framework, v.Model AS Model, v.Prompt AS Prompt, l.Source AS Source,
    countIf(v.First = l.Step) AS Hits, count() AS Cases
FROM (
  SELECT Project, TraceId, toString(Framework) AS Framework, toString(Model) AS Model, toString(Prompt) AS Prompt,
    assumeNotNull(ModelStep) AS First
  FROM mast_verdicts FINAL
  WHERE isNotNull(ModelStep) AND Status = 'ok' AND Outcome = 'failure' AND Kind = ''
    AND TraceId GLOBAL IN (SELECT TraceId FROM mast_human_labels UNION ALL SELECT TraceId FROM mast_confirmations)
  ORDER BY JudgedAt DESC
  LIMIT 1 BY Project, TraceId, Model, Prompt
) AS v
INNER JOIN (
  SELECT Project, TraceId, Source, argMax(Step, (Times, -toInt64(Step))) AS Step
  FROM (
    SELECT Project, TraceId, if(Blind, 'blind', 'beside') AS Source, assumeNotNull(DecisiveStep) AS Step,
      count() AS Times
    FROM mast_human_labels FINAL
    WHERE isNotNull(DecisiveStep)
    GROUP BY Project, TraceId, Source, Step
  )
  GROUP BY Project, TraceId, Source
  UNION ALL
  SELECT Project, TraceId, 'replays' AS Source, toUInt32(assumeNotNull(OriginStep)) AS Step
  FROM mast_confirmations FINAL
  WHERE OriginStep >= 0 AND Status IN {proved:Array(String)}
) AS l ON l.Project = v.Project AND l.TraceId = v.TraceId
GROUP BY Project, Framework, Model, Prompt, Source
ORDER BY Project, Framework, Model, Prompt, Source"""


@dataclass(frozen=True)
class ModelRecord:
    """The record of a model.

    Attributes:
        project: name of the project.
        framework: name of the framework.
        model: name of the model, or all names of a panel, as verdicts have them.
        prompt: digest of the questions that it was asked.
        hits: runs in which its first step was the right one, by who says so: ``blind`` for people who had not seen
            the verdict, ``beside`` for those who had, ``replays`` for replays that have confirmed a step.
        cases: all runs for which a step is known, likewise.
    """

    project: str
    framework: str
    model: str
    prompt: str
    hits: dict[str, int] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """The runs and the reader that the record is of."""
        return self.project, self.framework, self.model, self.prompt

    @property
    def blind(self) -> tuple[int, int]:
        """The hits and the cases that count."""
        return self.hits.get("blind", 0), self.cases.get("blind", 0)

    @property
    def is_short(self) -> bool:
        """True if blind labels are missing."""
        return self.blind[1] < FEWEST_CASES

    @property
    def standing(self) -> str:
        """The sentence on the weight of the model's word, and on what is missing."""
        right, cases = self.blind
        if self.is_short:
            return f"The model {self.model} has {cases} of {FEWEST_CASES} blind labels of such runs, so its step is a suggestion."
        weight = "counts as decisive" if asserts(right, cases) else "stays a suggestion"
        return f"The model {self.model} was right in {right} of {cases} blind labels of such runs, so its step {weight}."


def model_records(store: Store) -> list[ModelRecord]:
    """Return the record of every model that has read labelled or confirmed runs, with each of its prompts.

    Where people differ on a run, the step that most name counts. The newest verdict with a prompt counts.

    Raises:
        StorageError: the database does not answer.
    """
    found: dict[Kind, ModelRecord] = {}
    for row in store.query(_COUNTS, {"proved": list(PROVED)}):
        one = ModelRecord(row["Project"], row["Framework"], row["Model"], row["Prompt"])
        record = found.setdefault(one.kind, one)
        record.hits[row["Source"]] = int(row["Hits"])
        record.cases[row["Source"]] = int(row["Cases"])
    return list(found.values())


def record_of(store: Store, kind: Kind) -> ModelRecord:
    """Return the record of a model; an empty one where there is none.

    Args:
        store: the store of the verdicts.
        kind: of the runs and of their reader.

    Raises:
        StorageError: the database does not answer.
    """
    return next((each for each in model_records(store) if each.kind == kind), ModelRecord(*kind))


def record_behind(store: Store, verdict: Verdict | None) -> ModelRecord | None:
    """Return the record of a verdict's model; None where no model has read the run.

    Raises:
        StorageError: the database does not answer.
    """
    if verdict is None or not verdict.model:
        return None
    return record_of(store, (verdict.project, verdict.framework, verdict.model, verdict.prompt))
