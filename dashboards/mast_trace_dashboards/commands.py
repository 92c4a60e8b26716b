"""The table of all commands of mast-trace: `--help` reads it, and imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command.

    Attributes:
        made_of: module and name of its function, or of the group of its commands.
        help: the first sentences of its help.
    """

    made_of: str
    help: str


COMMANDS: Final[Mapping[str, Command]] = {
    "demo": Command(
        "mast_trace_dashboards.cli.commands.demo:demo",
        "Run real agents that fail in known ways, and show the findings. Needs no network and no key.",
    ),
    "up": Command(
        "mast_trace_dashboards.cli.commands.up:up",
        "Receive, store and judge runs, all in one process, until Ctrl-C.",
    ),
    "collect": Command(
        "mast_trace_dashboards.cli.commands.collect:app",
        "Receive and store runs; judge and dashboards run elsewhere.",
    ),
    "web": Command(
        "mast_trace_dashboards.cli.commands.web:web",
        "Serve the web view alone, beside a ClickHouse server or a running `mast-trace up`.",
    ),
    "runs": Command(
        "mast_trace_dashboards.cli.commands.runs:runs",
        "List runs with their findings, newest first.",
    ),
    "outcome": Command(
        "mast_trace_dashboards.cli.commands.runs:outcome",
        "Record the outcome of a run. It overrides the run's own, and the run is judged again.",
    ),
    "show": Command(
        "mast_trace_dashboards.cli.commands.show:show",
        "Show a run: its steps, the decisive error, and the failure modes with their evidence.",
    ),
    "compare": Command(
        "mast_trace_dashboards.cli.commands.compare:compare",
        "Show where a run parts from another one, or from the good run nearest to it.",
    ),
    "cost": Command(
        "mast_trace_dashboards.cli.commands.cost:cost",
        "Show what runs have cost, and how much of it came after the decisive step.",
    ),
    "profile": Command(
        "mast_trace_lab.teams.command:profile",
        "Measure how multi-agent a service is: who uses whose words, who does what, what talk costs.",
    ),
    "patterns": Command(
        "mast_trace_dashboards.cli.commands.patterns:group",
        "Failures that recur over runs: failure mode, agent, tool or text.",
    ),
    "mcp": Command(
        "mast_trace_dashboards.cli.commands.mcp:mcp",
        "Serve runs, verdicts, steps and queries to a coding assistant, over standard input and output.",
    ),
    "judge": Command(
        "mast_trace_dashboards.cli.commands.judge:group",
        "Judge runs.",
    ),
    "judge fit": Command(
        "mast_trace_lab.fit.command:fit_profile",
        "Fit a profile for decisive steps to labelled runs, and keep it if it is better than the present judge.",
    ),
    "check": Command(
        "mast_trace_dashboards.cli.commands.check:check",
        "Compare new runs with a baseline, and fail where a rate is higher.",
    ),
    "cases": Command(
        "mast_trace_dashboards.cli.commands.cases:cases",
        "Keep failures as cases: files in your repository that tests replay or run again.",
    ),
    "replay": Command(
        "mast_trace_lab.replay.command:app",
        "Replay a run: run its program again from the record, and report the first difference.",
    ),
    "confirm": Command(
        "mast_trace_lab.confirm.command:group",
        "Prove the decisive error of a failed run by replays. `confirm RUN -- COMMAND` is short for `confirm run RUN -- COMMAND`.",
    ),
    "prove": Command(
        "mast_trace_lab.confirm.command:prove",
        "Prove a run's decisive error as `confirm` does, from a first replay with the masks that it needs to a sentence.",
    ),
    "inject": Command(
        "mast_trace_lab.inject.command:app",
        "Plant faults in successful runs, and keep those that make the run fail, with their labels.",
    ),
    "selftest": Command(
        "mast_trace_lab.selftest.command:app",
        "Examine the judge on your own program: record it, plant faults, and judge the faulty runs.",
    ),
    "dataset": Command(
        "mast_trace_lab.inject.command:group",
        "Build labelled sets from planted faults and proved errors.",
    ),
    "lessons": Command(
        "mast_trace_lab.feedback.command:lessons",
        "Print what failed runs teach: confirmed, labelled and exact findings, with quotes of the runs.",
    ),
    "experiment": Command(
        "mast_trace_lab.feedback.command:experiment",
        "Say whether an arm is better, worse, or not decided; with --plan, print the size it needs first.",
    ),
    "train": Command(
        "mast_trace_lab.train.command:group",
        "Train a model to name decisive steps, on your own labels.",
    ),
    "label": Command(
        "mast_trace_dashboards.cli.commands.labels:label",
        "Record your opinion of a run. A later label of the same annotator replaces the earlier one.",
    ),
    "import": Command(
        "mast_trace_dashboards.cli.commands.transfer:import_files",
        "Store runs from files, judge and list them. Importing a file twice stores it once.",
    ),
    "export": Command(
        "mast_trace_dashboards.cli.commands.transfer:export",
        "Write runs to a file: trajectory, newest verdict and labels, one run in each line or row.",
    ),
    "erase": Command(
        "mast_trace_dashboards.cli.commands.erase:erase",
        "Erase runs for good: spans, verdicts, the judge model's answers, labels and evaluations.",
    ),
    "retain": Command(
        "mast_trace_dashboards.cli.commands.retain:retain",
        "Limit stored data by age or by size, and keep failures longer than successes.",
    ),
    "backup": Command(
        "mast_trace_dashboards.cli.commands.backup:backup",
        "Back up a data folder: the database, and the requests that wait to be stored.",
    ),
    "restore": Command(
        "mast_trace_dashboards.cli.commands.backup:restore",
        "Restore a backup into an empty data folder. Start `mast-trace up` on it afterwards.",
    ),
    "alerts": Command(
        "mast_trace_dashboards.cli.commands.alerts:app",
        "Evaluate the shipped alert rules.",
    ),
    "dashboards": Command(
        "mast_trace_dashboards.cli.commands.dashboards:app",
        "Grafana dashboards and alert rules as files.",
    ),
    "migrate": Command(
        "mast_trace_dashboards.cli.commands.admin:migrate_database",
        "Create the tables, or bring them up to this version. Safe to run again, and from many places.",
    ),
    "config": Command(
        "mast_trace_dashboards.cli.commands.admin:config",
        "Print every effective setting with its origin and the variable that sets it.",
    ),
    "doctor": Command(
        "mast_trace_dashboards.cli.commands.admin:diagnosis",
        "Show which frameworks are recorded, and whether the collector accepts spans.",
    ),
}
"""By name; one inside of a group has the group's name before its own."""
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Start": ("demo", "up", "runs", "show", "doctor"),
    "Look": (
        *("web", "compare", "cost", "profile", "patterns", "mcp", "dashboards", "import", "export"),
    ),
    "Judge": ("judge", "label", "outcome", "check", "cases", "lessons", "experiment", "train"),
    "Prove": ("prove", "replay", "confirm", "inject", "selftest", "dataset"),
    "Operate": (
        *("collect", "config", "migrate", "alerts", "retain", "erase", "backup", "restore"),
    ),
}
"""The commands of each part of `--help`, in its order: those to begin with come first."""


def has_command(name: str) -> bool:
    """Return whether a command of the table is installed: some are in a package that may be left out."""
    return find_spec(COMMANDS[name].made_of.partition(".")[0]) is not None
