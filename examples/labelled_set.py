"""Builds a labelled set of failures from the five example programs, without a network or a key.

::

    python labelled_set.py --out planted            # the programs whose frameworks are installed here
    python labelled_set.py --out planted --count 60 # faults for each program
    python labelled_set.py --out planted --program ag2_group_chat.py
    python labelled_set.py --out planted --python crewai_stock.py=/path/to/bin/python

Each program is recorded on models that read what they are shown, faults are planted in its successes, and
those that cause a failure become labels. The frameworks contradict each other; programs of other environments
are run by the Pythons named. The folder gets the set and ``store``, from which an interrupted build goes on.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripted_llm import ScriptedLLM
from team_policies import VOICES, policy

from mast_trace.exceptions import MastTraceError
from mast_trace_collector.storage import Store, migrate
from mast_trace_collector.storage.runs import run_summary
from mast_trace_judge.batch import read_alone
from mast_trace_judge.local.layers import judge_by_rules
from mast_trace_lab.inject.dataset import build
from mast_trace_lab.inject.injecting import inject
from mast_trace_lab.program.budget import Budget
from mast_trace_lab.program.forking import LazyParent
from mast_trace_lab.program.recording import record, recorded
from mast_trace_lab.program.setup import Setup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mast_trace_judge.store.injections import Injection

HERE = Path(__file__).resolve().parent
TIMEOUT = 30.0
"""Seconds of one replay; a busy machine needs more."""


@dataclass(frozen=True)
class Program:
    """One of the example programs.

    Attributes:
        file: its path below this folder.
        package: the package of its framework.
        preload: modules that are imported once for all replays.
    """

    file: str
    package: str
    preload: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the file."""
        return Path(self.file).name


PROGRAMS = (
    Program(
        "langgraph_team.py",
        "langgraph_supervisor",
        ("langchain.agents", "langchain_openai", "langgraph_supervisor"),
    ),
    Program("ag2_group_chat.py", "ag2", ("ag2", "ag2.config", "ag2.network", "openai")),
    Program(
        "autogen_group_chat.py",
        "autogen",
        ("autogen", "autogen.agentchat.group.patterns", "openai.resources"),
    ),
    Program("crewai_stock.py", "crewai", ("crewai", "crewai.tools", "openai")),
    # MetaGPT reads its settings while it is imported, so that only what it imports is prepared.
    Program(
        "metagpt/leap_year_team.py",
        "metagpt",
        ("openai", "pandas", "nbclient", "tiktoken", "anthropic"),
    ),
)


def build_set(
    folder: Path,
    pythons: Mapping[str, str],
    counts: Mapping[str, int],
    seed: int = 1,
    timeout: float = TIMEOUT,
) -> Iterator[dict[str, Any]]:
    """Record the programs and plant faults, voice by voice; yield figures of each program and voice.

    Args:
        folder: of the set and its store.
        pythons: path of the Python of each program, by its file name.
        counts: faults of each program, over all voices.
        seed: decides steps, numbers and phrasings.
        timeout: seconds of one replay, in which chats that wait for ever are killed.

    Raises:
        MastTraceError: a program cannot be recorded, or its run cannot be replayed.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with Store.open(f"chdb://{(folder / 'store').absolute()}") as store:
        migrate(store)
        passed: dict[str, Counter[str]] = {name: Counter() for name in pythons}
        for voice in range(VOICES):
            for program in PROGRAMS:
                wanted = _share(counts.get(program.name, 0), voice)
                if program.name in pythons and wanted:
                    done = planted(
                        store,
                        program,
                        voice,
                        pythons[program.name],
                        wanted,
                        seed,
                        passed,
                        timeout=timeout,
                    )
                    passed[program.name].update(each["operator"] for each in done["faults"])
                    build(store, folder, licence="Apache-2.0")
                    yield done


def _share(count: int, voice: int) -> int:
    """Return the number of a program's faults that are planted in one voice."""
    return count // VOICES + (voice < count % VOICES)


def planted(
    store: Store,
    program: Program,
    voice: int,
    python: str,
    count: int,
    seed: int,
    passed: Mapping[str, Counter[str]],
    *,
    timeout: float = TIMEOUT,
) -> dict[str, Any]:
    """Record one program in one voice, plant faults, and return the figures."""
    command = (python, str(HERE / program.file))
    with ExitStack() as held:
        server = held.enter_context(ScriptedLLM(policy(program.name, voice)))
        environment = variables(program, server.url)
        label = f"labelled_set {program.name} {voice}"
        (run, *_) = recorded(store, label) or record(
            store, command, label=label, timeout=300.0, environment=environment
        )
        parent = held.enter_context(LazyParent(program.preload, warn=print))
        summary = run_summary(store, run.trace_id, project=run.project)
        if summary is None:
            raise MastTraceError(f"the run of {program.name} is not stored")
        setup = Setup(
            command,
            reset=("true",),  # the tools read constants
            live_tools=("*",),
            timeout=timeout,
            environment=environment,
            parent=parent,
        )
        made = inject(
            store,
            summary,
            read_alone(store, summary),
            setup,
            Budget(),
            seed=seed,
            count=count,
            passed=passed[program.name],
            changed=lambda state: _show(program.name, voice, state),
        )
    return {
        "program": program.name,
        "framework": summary.framework,
        "voice": voice,
        "faults": [
            {
                "operator": each.operator,
                "mode": each.mode,
                "verdict": each.verdict,
                "decisive": each.decisive,
                "replays": each.faulty + each.restored,
                "examined": _examined(each),
            }
            for each in made.injections
        ],
        "replays": made.replays,
        "live_calls": made.live_calls,
        "seconds": round(_seconds(store, run.trace_id), 1),
        "forked": parent is not None,
        "refused": made.refused,
    }


def variables(program: Program, url: str) -> dict[str, str]:
    """Return the environment of a program whose model is at an address."""
    return {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "scripted",
        "OTEL_SERVICE_NAME": Path(program.file).stem,
        "LANGSMITH_TRACING": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "CREWAI_TESTING": "true",
    }


def _seconds(store: Store, trace_id: str) -> float:
    """Return the seconds of all replays of a run, those of earlier processes included."""
    (row,) = store.query(
        "SELECT sum(Seconds) AS Sum FROM mast_replays FINAL WHERE TraceId = {run:String}",
        {"run": trace_id},
    )
    return float(row["Sum"])


def _examined(injection: Injection) -> dict[str, Any]:
    """Return the findings of the judge's rules about a faulty run, and its first candidate."""
    if injection.run is None:
        return {}
    local = judge_by_rules(injection.run)
    first = local.attribution.candidates[:1]
    return {
        "modes": sorted({finding.code for finding in local.modes}),
        "first": [[each.step, each.agent] for each in first],
        "step": injection.step,
        "agent": injection.agent,
    }


def installed(given: Sequence[str] = (), only: Sequence[str] = ()) -> dict[str, str]:
    """Return the Pythons of the programs: those named, and this one where it has the framework.

    Args:
        given: names of programs, each with ``=`` and the path of its Python.
        only: names of the programs that are wanted; all if empty.

    Raises:
        MastTraceError: a name is not one of a program, or there is no such Python.
    """
    named = dict(each.partition("=")[::2] for each in given)
    if unknown := sorted({*named, *only} - {program.name for program in PROGRAMS}):
        known = ", ".join(program.name for program in PROGRAMS)
        raise MastTraceError(f"there is no program {', '.join(unknown)}; there are {known}")
    for program, python in named.items():
        if shutil.which(python) is None:
            raise MastTraceError(f"there is no Python {python or 'named'} for {program}")
    for program in PROGRAMS:
        if only and program.name not in only:
            named.pop(program.name, None)
            continue
        look = (
            f"import importlib.util as u, sys; sys.exit(u.find_spec({program.package!r}) is None)"
        )
        if (
            program.name not in named
            and not subprocess.run([sys.executable, "-c", look], check=False).returncode
        ):
            named[program.name] = sys.executable
    return named


def _show(program: str, voice: int, state: Any) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(
            f"\r{program}, voice {voice + 1} of {VOICES}: {state.replays} replays \x1b[K"
        )


def main() -> None:
    """Build the set, and print a line for each program."""
    try:
        _build(_chosen())
    except (MastTraceError, OSError) as error:
        raise SystemExit(f"error: {error}") from error


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of the set")
    parser.add_argument("--count", type=int, default=12, help="faults of each program")
    parser.add_argument(
        "--program", action="append", default=[], help="only this program; several at once"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides steps, numbers and phrasings")
    parser.add_argument("--python", action="append", default=[], metavar="PROGRAM=PATH")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds of one replay")
    return parser.parse_args()


def _build(chosen: argparse.Namespace) -> None:
    pythons = installed(chosen.python, chosen.program)
    if not pythons:
        raise MastTraceError("none of the frameworks is installed here; name a Python by --python")
    counts = dict.fromkeys(pythons, chosen.count)
    for each in build_set(chosen.out, pythons, counts, chosen.seed, chosen.timeout):
        verdicts = Counter(fault["verdict"] for fault in each["faults"])
        told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
        where = f"{each['program']}, voice {each['voice'] + 1} of {VOICES}"
        print(
            f"{where}: {told or each['refused'] or 'no fault'} in {each['seconds']} s", flush=True
        )


if __name__ == "__main__":
    main()
