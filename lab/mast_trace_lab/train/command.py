"""`mast-trace train`: a training set from one's own labels, and a model trained on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from mast_trace.exceptions import ConfigurationError
from mast_trace_dashboards.cli.open_store import open_store
from mast_trace_dashboards.cli.options import AsJson, ConfigFile, DataDir, Project, Uncertain, Url
from mast_trace_dashboards.cli.output import FittedTable, console, plain, print_json, say, warn
from mast_trace_dashboards.printable import counted
from mast_trace_judge.config import JudgeConfig
from mast_trace_judge.llm.transcript import estimate_tokens
from mast_trace_judge.study.bench.rendering import tables, to_json
from mast_trace_judge.version import judge_version, own_profiles
from mast_trace_lab.inject.dataset import SOURCES, sources_of
from mast_trace_lab.train.examples import Question, Reward, divide, read_examples, write_examples
from mast_trace_lab.train.export import Export, Failure, set_failures, stored_failures
from mast_trace_lab.train.memory import CARDS, MemoryPlan, fitted, shape_of
from mast_trace_lab.train.report import CurvePoint, report_of, write_report
from mast_trace_lab.train.settings import Training, begin, setting

_NEEDED: Final = ("torch", "transformers", "datasets", "accelerate", "trl")

_PARTS: Final = ("GB always", "vLLM", "+ drawing", "or learning", "at most")
_USUAL = Training("")
_MODEL = typer.Option("--model", help="Folder of a model, or a name that is known to transformers.")


def check_installed(*, lora: bool = False) -> None:
    """Check that everything is there that a training imports.

    Args:
        lora: whether adapters are trained, which needs one package more.

    Raises:
        ConfigurationError: something is missing; the text says what to install.
    """
    needed = (*_NEEDED, "peft") if lora else _NEEDED
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"training needs {', '.join(missing)}: pip install 'mast-trace[train]'. On a machine without "
            "an accelerator install first a torch that brings no CUDA along; docs/how-to/train.md says how"
        )


def run_training(
    model: Annotated[str, _MODEL],
    data: Annotated[Path, typer.Option("--data", help="File by `mast-trace train export`.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the training.")],
    steps: Annotated[int, typer.Option(min=1, help="Optimiser steps in all.")] = _USUAL.steps,
    prompts: Annotated[int, typer.Option(min=1, help="Prompts a step.")] = _USUAL.prompts,
    generations: Annotated[
        int, typer.Option(min=2, help="Answers to each prompt, compared with each other.")
    ] = _USUAL.generations,
    micro_batch: Annotated[
        int,
        typer.Option(
            min=0,
            help="Answers that pass through the model at a time; 0: by the accelerator's memory.",
        ),
    ] = _USUAL.micro_batch,
    learning_rate: Annotated[
        float, typer.Option(help="Constant learning rate; about 1e-5 with --lora.")
    ] = _USUAL.learning_rate,
    step_weight: Annotated[
        float, typer.Option("--lambda", help="Weight of the step's distance; the rest: the agent.")
    ] = _USUAL.step_weight,
    sigma: Annotated[
        float | None,
        typer.Option(
            "--sigma",
            help="Width of the reward around the right step, in steps.",
            show_default="a twentieth of the run, at least 1",
        ),
    ] = None,
    beta: Annotated[
        float, typer.Option(min=0, help="Weight of the distance from the untrained model.")
    ] = _USUAL.beta,
    temperature: Annotated[
        float, typer.Option(help="Temperature at which answers are drawn.")
    ] = _USUAL.temperature,
    answer_tokens: Annotated[
        int, typer.Option(min=1, help="Longest answer in tokens.")
    ] = _USUAL.answer_tokens,
    held_out: Annotated[
        float, typer.Option(help="Share of the examples to hold out, by task.")
    ] = _USUAL.held_out,
    all_operators: Annotated[
        bool, typer.Option("--all-operators", help="Train on held-out operators too.")
    ] = False,
    lora: Annotated[
        int, typer.Option("--lora", min=0, help="Rank of LoRA adapters; 0 trains all weights.")
    ] = _USUAL.lora_rank,
    evaluate_every: Annotated[
        int, typer.Option(min=1, help="Steps between two looks at the held-out examples.")
    ] = _USUAL.evaluate_every,
    save_every: Annotated[
        int, typer.Option(min=1, help="Steps between two checkpoints.")
    ] = _USUAL.save_every,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = _USUAL.seed,
    cpu: Annotated[bool, typer.Option("--cpu", help="Leave an accelerator alone.")] = False,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE, a further field of TRL's GRPOConfig; may be repeated.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the memory that it takes, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model by GRPO to name decisive steps, and score it on held-out runs.

    The reward of an answer is 0 unless it can be read, else lambda times a Gaussian of its distance
    from the right step, plus 1 - lambda if the step is of the right agent. The folder gets
    checkpoints, curve.jsonl, the trained model and report.md; the same command continues a training
    that was interrupted, and a larger --steps makes it longer. Needs the extra `train`.

    Example: `mast-trace train run --model ./Qwen3-8B --data train.jsonl --out trained --lora 16`
    """
    training = Training(
        model=model,
        steps=steps,
        prompts=prompts,
        generations=generations,
        micro_batch=micro_batch,
        learning_rate=learning_rate,
        step_weight=step_weight,
        sigma=sigma,
        beta=beta,
        temperature=temperature,
        answer_tokens=answer_tokens,
        held_out=held_out,
        all_operators=all_operators,
        lora_rank=lora,
        evaluate_every=evaluate_every,
        save_every=save_every,
        seed=seed,
        cpu=cpu,
        more=dict(map(setting, more or ())),
    )
    Reward(step_weight, sigma)
    if dry_run:
        _show_plans(training, data)
        return
    check_installed(lora=lora > 0)
    division = divide(read_examples(data), held_out, seed=seed, all_operators=all_operators)
    for changed in begin(out, training, data):
        warn(f"This may not come out as without the interruption: {changed}.")
    shown = console(stderr=True)
    shown.print(
        plain(
            f"{counted(len(division.train), 'example')} to train on, {len(division.held_out)} held out by "
            f"{division.by}"
            + (f", {division.unused} of held-out operators unused" if division.unused else "")
        )
    )
    with shown.status("Loading"):
        from mast_trace_lab.train.trainer import train
    try:
        done = train(
            division,
            training,
            out,
            told=lambda point: shown.print(plain(_point_line(point))),
            planned=lambda plan: shown.print(_plans([plan])),
            bars=shown.is_terminal,
        )
    except KeyboardInterrupt:
        raise ConfigurationError(
            "interrupted: the same command continues from the last checkpoint"
        ) from None
    report = report_of(division, done.curve)
    file = write_report(report, out)
    if as_json:
        more_of = {"model": str(done.model), "resumed_at": done.resumed_at, "report": str(file)}
        print_json({**more_of, "scores": to_json(report)["scores"], "notes": report.notes})
        return
    for table in tables(report):
        console().print(table)
    for note in report.notes:
        say(f"- {note}")
    say(f"The model is in {done.model}, the report in {file}.")


def _show_plans(training: Training, data: Path) -> None:
    """Print the memory that a training takes on usual cards.

    Raises:
        ConfigurationError: the model is no folder with a dense decoder, or the training set cannot be read.
    """
    shape = shape_of(Path(training.model))
    if shape is None:
        raise ConfigurationError(
            f"{training.model} is no folder of a dense decoder: its memory is unknown"
        )
    texts = (
        "\n".join(message["content"] for message in each.prompt) for each in read_examples(data)
    )
    tokens = max(map(estimate_tokens, texts))
    say(f"Longest prompt: about {tokens} tokens. Weights: {shape.parameters / 1e9:.1f} billion.")
    console().print(_plans([fitted(training, shape, tokens, card) for card in CARDS]))


def _plans(plans: Sequence[MemoryPlan]) -> FittedTable:
    table = FittedTable("GB of the card", "answers drawn at a time", "micro-batch", *_PARTS, "fits")
    for each in plans:
        sizes = (each.held, each.vllm, each.drawing, each.learning, each.total)
        numbers = (each.at_once, each.training.micro_batch, *map(round, sizes))
        table.add_row(str(round(each.card)), *map(str, numbers), "yes" if each.fits else "no")
    return table


def _point_line(point: CurvePoint) -> str:
    agent = "" if point.agent is None else f", agent {100 * point.agent:.0f} %"
    return (
        f"Held out, after {counted(point.at, 'step')}: reward {point.reward:.3f}, step {100 * point.step:.0f} %"
        f"{agent}, readable {100 * point.readable:.0f} %"
    )


group = typer.Typer(
    name="train",
    help="Train a model to name decisive steps, on your own labels.",
    no_args_is_help=True,
)


@group.callback()
def _group() -> None:
    pass


@group.command("export")
def export_set(
    out: Annotated[Path, typer.Option("--out", help="File to write.")] = Path("train.jsonl"),
    labels: Annotated[
        str, typer.Option("--labels", help="Sources of labels, with commas between.")
    ] = ",".join(SOURCES),
    question: Annotated[
        Question,
        typer.Option(
            "--question",
            help="read: the judge's own first question; step: the number of the step alone.",
        ),
    ] = "read",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            "--data",
            help="Folder by `mast-trace dataset build`, instead of the store; may be repeated.",
            show_default=False,
        ),
    ] = None,
    uncertain: Uncertain = False,
    project: Project = None,
    url: Url = None,
    data_dir: DataDir = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the labelled failures as prompts, in the words in which the judge asks its model.

    Labels are those of `mast-trace label RUN --step N`, of `mast-trace confirm` and of
    `mast-trace inject`. Each line of the file has prompt, step, agent, mode, steps, source and
    group, and the run. It holds texts of your agents: treat it as such.

    Example: `mast-trace train export --labels person,injection --out train.jsonl`
    """
    sources = sources_of(labels)
    settings = JudgeConfig.load(config)
    profiles = own_profiles(settings)
    export = Export(question, settings, judge_version(settings, profiles), profiles, uncertain)
    shown = console(stderr=True)
    opened = nullcontext() if data else open_store(url, data_dir, config)
    with opened as store, shown.status("Writing prompts"):

        def failures() -> Iterator[Failure]:
            for folder in data or ():
                yield from set_failures(folder, sources)
            if store is not None:
                yield from stored_failures(store, sources, project=project)

        count = write_examples(export.examples(failures()), out)
    if as_json:
        counts = {"examples": count, "by_source": export.written, "left_out": export.left_out}
        print_json({"file": str(out), "question": question, **counts})
    else:
        told = ", ".join(f"{n} by {source}" for source, n in sorted(export.written.items()))
        say(f"Wrote {counted(count, 'example')} to {out}" + (f" ({told})." if told else "."))
        for reason, number in sorted(export.left_out.items()):
            say(f"Left out {number}: {reason}.")
    if not count:
        warn(
            "There is nothing to train on. Name decisive steps by `mast-trace label RUN --step N`, prove "
            "them by `mast-trace confirm RUN`, or plant faults by `mast-trace inject RUN`."
        )
        sys.exit(1)


group.command("run")(run_training)
