"""`mast-trace judge fit`: a profile from labels of people, confirmed replays and planted faults."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from mast_trace.exceptions import MastTraceError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Uncertain, Url
from mast_trace_dashboards.cli.output import console, print_json, say, shown_progress
from mast_trace_dashboards.whole_files import write_whole
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.planted import certain, left_out_words
from mast_trace_judge.study.labelled import (
    LabelledRun,
    labelled_run,
    labelled_runs,
    operator_of,
    read_injected,
)
from mast_trace_judge.study.training import FEWEST_LABELS
from mast_trace_lab.fit.fit_on import REPEATS, fit_on
from mast_trace_lab.fit.labels import INJECTION, PERSON, REPLAY, source_of
from mast_trace_lab.fit.render import decision_words, parts
from mast_trace_lab.inject.dataset import labelled, sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from mast_trace_collector.storage import Store
    from mast_trace_lab.fit.report import FitReport


def stored(store: Store, sources: Collection[str]) -> list[LabelledRun]:
    """Read the labelled failures of a store.

    A run that both a person and a replay have labelled counts once, by the person's label, so that no fold learns from
    one of them what it is asked of the other.

    Args:
        store: the database.
        sources: some of `SOURCES`.

    Raises:
        StorageError: the database does not answer.
    """
    found = labelled_runs(store) if PERSON in sources else []
    known = {run.name for run in found}
    if {REPLAY, INJECTION} & set(sources):
        found += [
            labelled_run(asdict(each))
            for each in labelled(store)
            if each.source in sources and each.failed and each.id not in known
        ]
    return found


def from_set(folder: Path, sources: Collection[str]) -> tuple[list[LabelledRun], list[LabelledRun]]:
    """Read the failures of a set: those to learn from, and those of operators that no fit should see.

    Raises:
        ConfigurationError: the folder holds no set of this version.
    """

    def wanted(runs: Sequence[LabelledRun]) -> list[LabelledRun]:
        return [run for run in runs if run.subset in sources]

    return (
        wanted(read_injected(folder, held_out=False)),
        wanted(read_injected(folder, held_out=True)),
    )


def fit_profile(
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            help="Sources of labels, with commas between: person, replay, injection.",
            show_default="person; with --dataset: replay,injection",
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            help="Folder of `mast-trace dataset build`, in place of the store's replays and injections.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The profile's name, which verdicts give.")] = "own",
    framework: Annotated[
        list[str] | None,
        typer.Option(help="Only this framework's runs.", show_default="those labelled"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write.", show_default="NAME.json in judge_profiles_dir, or here"
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the profile even if it is not better.")
    ] = False,
    uncertain: Uncertain = False,
    repeats: Annotated[
        int, typer.Option(min=1, help="Partitions over which the plain score is averaged.")
    ] = REPEATS,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Fit a profile for decisive steps to labelled runs, and keep it if it is better than the present judge.

    Labels are decisive steps that people named by `mast-trace label RUN --step N`, errors that `mast-trace confirm`
    proved, and faults that `mast-trace inject` planted. The judge uses the profiles in the folder named by
    `judge_profiles_dir`, for runs of the frameworks that they were fitted to.

    The profile is scored on runs, operators and scenarios that it has not seen. A file that exists, or the judge as it
    ships, is kept unless the new profile is better with its interval; the exit status is then 1.

    Example: `mast-trace judge fit --labels person,replay,injection --out profiles/billing.json`
    or `mast-trace judge fit --dataset my-failures`
    """
    given = labels or ("person" if dataset is None else f"{REPLAY},{INJECTION}")
    sources = sources_of(given)
    runs, reserved = _read(sources, dataset, url, data_dir, config)
    if framework:
        runs = [run for run in runs if run.trajectory.framework in framework]
        reserved = [run for run in reserved if run.trajectory.framework in framework]
    left_out: Counter[str] = Counter()
    if not uncertain:
        runs, left_out = certain(runs, operator_of)
        reserved, of_reserved = certain(reserved, operator_of)
        left_out += of_reserved
    _check(runs, sources, left_out)
    used_folder = JudgeConfig.load(config).judge_profiles_dir
    path = out or (used_folder or Path()) / f"{name}.json"
    old = Profile.from_json(path.read_text("utf-8")) if path.is_file() else None
    source = dataset.name if dataset else "the store"
    with _bar() as progress:
        found = fit_on(
            runs,
            name=name,
            sources=sources,
            trained_on=f"{len(runs)} labelled runs of {source}",
            old=old,
            reserved=reserved,
            repeats=repeats,
            progress=progress,
        )
    better = found.decision is not None and found.decision.better
    if better or force:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, found.profile.to_json())
    written = better or force
    if as_json:
        print_json(
            _as_json(found, path, written=written) | {"left_out_as_uncertain": dict(left_out)}
        )
    else:
        if left_out:
            say(left_out_words(left_out))
        _print(found, path, used_folder, old=old, written=written)
    if not written:
        raise typer.Exit(1)


def _read(
    sources: Sequence[str],
    dataset: Path | None,
    url: str | None,
    data_dir: Path | None,
    config: Path | None,
) -> tuple[list[LabelledRun], list[LabelledRun]]:
    """Return the runs to learn from, and those of operators that a set reserves."""
    runs: list[LabelledRun] = []
    reserved: list[LabelledRun] = []
    left = set(sources)
    if dataset is not None:
        runs, reserved = from_set(dataset, sources)
        left -= {REPLAY, INJECTION}
    if left:
        with open_store(url, data_dir, config) as store:
            known = {run.name for run in runs if run.subset == REPLAY}
            own = stored(store, left)
            # A confirmed run may have a person's label as well: it counts once, by that.
            twice = known & {run.name for run in own}
            runs = [run for run in runs if run.name not in twice] + own
    return runs, reserved


def _check(
    runs: Sequence[LabelledRun], sources: Sequence[str], left_out: Mapping[str, int]
) -> None:
    """Refuse too few labels, and say where more come from."""
    if len(runs) >= FEWEST_LABELS:
        return
    counts = Counter(source_of(run) for run in runs)
    told = ", ".join(f"{counts[source]} {source}" for source in sources)
    raise MastTraceError(
        f"{len(runs)} runs have a label with a decisive step; a profile needs {FEWEST_LABELS} ({told}). "
        "Give more by `mast-trace label RUN --step N`, or plant "
        "faults by `mast-trace inject` and add --labels person,replay,injection"
        + (f". {left_out_words(left_out)}" if left_out else "")
    )


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on a terminal; yield the function that moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with shown_progress(*columns, TimeElapsedColumn()) as bar:
        task = bar.add_task("Reading the runs", total=None)

        def moved(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield moved


def _as_json(found: FitReport, path: Path, *, written: bool) -> dict[str, Any]:
    profile = found.profile
    told: dict[str, Any] = json.loads(
        json.dumps(asdict(replace(found, profile=Profile("", {}))), ensure_ascii=False)
    )
    told.pop("profile")
    return {
        "file": str(path),
        "written": written,
        "labels": profile.labels,
        "sources": dict(profile.sources),
        "scores": dict(profile.scores),
        "folded_by": profile.folded_by,
        "frameworks": list(profile.frameworks),
        "injection_only": profile.injection_only,
        "injected_weight": profile.injected_weight,
        "abstain_below": profile.abstain_below,
        "passed": found.passed,
        "report": told,
    }


def _print(
    found: FitReport, path: Path, used_folder: Path | None, *, old: Profile | None, written: bool
) -> None:
    for part in parts(found):
        console().print(part)
    profile = found.profile
    say(decision_words(found))
    if not written:
        kept = f"{path} stays as it is" if old else "No profile is written"
        say(f"{kept}. --force writes the new one all the same.")
        return
    meant = ", ".join(profile.frameworks)
    say(f"Written to {path}, for runs of {meant or 'no framework'}.")
    if used_folder is None or used_folder.resolve() != path.parent.resolve():
        used = "The judge uses the profiles in the folder that MAST_TRACE_JUDGE_PROFILES_DIR names."
        say(used)
    if not profile.frameworks:
        shape = "These runs name no framework: the profile is used for runs of their shape."
        say(shape)
