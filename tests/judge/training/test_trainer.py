"""Real training of a tiny model on the processor. Needs the extra `train`; `nox -s train` has it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
import toy_training
from toy_training import tiny_model

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mast_trace_lab.train.trainer import Trained

pytest.importorskip("trl", reason="needs the extra train")

import torch
from safetensors.torch import load_file

from mast_trace.exceptions import ConfigurationError
from mast_trace_lab.train.examples import divide, named_step
from mast_trace_lab.train.report import report_of
from mast_trace_lab.train.settings import Training
from mast_trace_lab.train.trainer import Passes, answers, train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EXAMPLES = toy_training.examples(12)
DIVISION = divide(EXAMPLES, 0.25)
STEPS = 30


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads cost a model of this size far more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def settings(model: Path, **given: object) -> Training:
    usual = {
        "steps": STEPS,
        "prompts": 4,
        "generations": 8,
        "micro_batch": 32,
        "learning_rate": 2e-2,
        "answer_tokens": 3,
        "evaluate_every": 6,
        "save_every": 6,
        "cpu": True,
    }
    return Training(model=str(model), **{**usual, **given})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A training from beginning to end."""
    return train(DIVISION, settings(model), tmp_path_factory.mktemp("whole"))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(folder / "model.safetensors"))


def equal(one: Path, other: Path) -> bool:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


def test_the_reward_rises_on_runs_that_it_was_not_trained_on(whole: Trained) -> None:
    first, last = whole.curve[0], whole.curve[-1]
    assert [each.at for each in whole.curve] == [0, 6, 12, 18, 24, 30]
    assert whole.resumed_at is None
    assert first.reward < 0.2
    assert last.reward > 0.9
    assert (last.step, last.agent, last.readable) == (1.0, 1.0, 1.0)
    assert last.steps.keys() == {each.id for each in DIVISION.held_out}


def test_the_weights_change(whole: Trained, model: Path) -> None:
    assert not equal(model, whole.model)


def test_the_trained_model_is_loaded_and_answers(whole: Trained) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    loaded = AutoModelForCausalLM.from_pretrained(whole.model)
    tokenizer = AutoTokenizer.from_pretrained(whole.model)
    said = answers(
        loaded, tokenizer, EXAMPLES, tokens=3, at_once=5, template={}, tick=lambda _: None
    )
    assert [named_step(text, each) for text, each in zip(said, EXAMPLES, strict=True)] == [2] * 12


def test_a_resumed_training_ends_alike(whole: Trained, model: Path, tmp_path: Path) -> None:
    """Stopped in the third pass over the prompts, while it learns; a later checkpoint is unfinished."""
    train(DIVISION, settings(model, steps=5), tmp_path)
    torn = tmp_path / "checkpoints" / "checkpoint-6"
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"torn")
    resumed = train(DIVISION, settings(model), tmp_path)
    assert resumed.resumed_at == 5
    assert equal(resumed.model, whole.model)
    assert [each for each in resumed.curve if each.at != 5] == list(whole.curve)
    again = train(DIVISION, settings(model), tmp_path)
    assert again.resumed_at == STEPS
    assert equal(again.model, whole.model)


def test_equal_settings_give_equal_weights(whole: Trained, model: Path, tmp_path: Path) -> None:
    """Looks at the held-out runs change nothing."""
    blind = train(DIVISION, settings(model, evaluate_every=100), tmp_path / "blind")
    assert equal(blind.model, whole.model)
    other = train(DIVISION, settings(model, seed=7), tmp_path / "other")
    assert not equal(other.model, whole.model)


def test_adapters_are_trained_resumed_and_merged(model: Path, tmp_path: Path) -> None:
    once = train(DIVISION, settings(model, lora_rank=4, steps=6), tmp_path / "once")
    train(DIVISION, settings(model, lora_rank=4, steps=3, save_every=3), tmp_path / "twice")
    resumed = train(DIVISION, settings(model, lora_rank=4, steps=6), tmp_path / "twice")
    assert resumed.resumed_at == 3
    assert equal(once.model, resumed.model)
    assert weights(once.model).keys() == weights(model).keys()
    assert not equal(once.model, model)
    assert (
        tmp_path / "once" / "checkpoints" / "checkpoint-6" / "adapter_model.safetensors"
    ).exists()


def test_the_report_scores_before_and_after(whole: Trained) -> None:
    report = report_of(DIVISION, whole.curve)
    shares = {each.method: each.shares["step"].value for each in report.scores}
    assert shares["the model before"] == whole.curve[0].step
    assert (shares["the model after 30 steps"], shares["random step"]) == (1.0, 0.25)
    assert shares["always step 0"] == 0.0
    assert any("3 got a right step" in note for note in report.notes)


def test_each_pass_has_an_order_of_its_own() -> None:
    rows = list(range(9))
    longer, shorter = (
        Passes(n, data_source=rows, mini_repeat_count=2, batch_size=4, seed=3) for n in (5, 2)
    )
    places = list(longer)
    assert len(places) == len(longer) == 5 * 16
    assert places == list(longer)
    assert list(shorter) == places[: len(shorter)]
    assert places[:16] != places[16:32]
    assert all(places[n] == places[n + 1] for n in range(0, len(places), 2))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prompts": 10, "micro_batch": 16}, "fewer than the 10 prompts"),
        ({"answer_tokens": 5000}, "exceeds the model's context of 2048"),
        ({"more": {"no_such_field": 1}}, "no_such_field"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    model: Path, tmp_path: Path, given: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        train(DIVISION, settings(model, **given), tmp_path)


def test_a_model_that_is_not_there_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere cannot be loaded"):
        train(DIVISION, settings(tmp_path / "nowhere"), tmp_path / "out")
    empty = tmp_path / "empty"
    shutil.copytree(model, empty)
    (empty / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        train(DIVISION, settings(empty), tmp_path / "out")


def test_answers_to_one_prompt_at_a_time_make_as_many_steps(model: Path, tmp_path: Path) -> None:
    """A step of four prompts draws four times then, and each pass over the prompts holds as many steps as before."""
    small = {"steps": 3, "micro_batch": 8, "more": {"steps_per_generation": 1}}
    done = train(DIVISION, settings(model, evaluate_every=3, save_every=3, **small), tmp_path)
    assert [each.at for each in done.curve] == [0, 3]
