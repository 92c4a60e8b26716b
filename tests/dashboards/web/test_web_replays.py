"""The page of a run tells what replays have shown, with counts, and never more than was proved."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from typing import TYPE_CHECKING, get_args

import pytest
from replayed_runs import FIX, PROVED, SAID, TWIN, conclude, contrast, proof, rate, team
from rich.console import Console
from web_runs import BARE, HEALTHY, HOSTILE, LONG, SHORT, UNSURE, judged, message

from mast_trace_dashboards.certainty import HEADINGS, evidence_words
from mast_trace_dashboards.cli.render import load, run_view
from mast_trace_dashboards.mcp_server.reading import StoreReading
from mast_trace_dashboards.web import app
from mast_trace_judge.confirmation import Confirmation, ConfirmationStatus, FurtherFix
from mast_trace_judge.store.verdicts import save

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from mast_trace_collector.storage import Store


def said(html: str) -> str:
    """The words of a page, with white space as one blank."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).replace("\xa0", " ").split())


def step_of(html: str, number: int) -> str:
    return said(html.split(f'id="step-{number}"')[1].split("</li>", maxsplit=1)[0])


@pytest.fixture
def concluded(client: httpx.Client, store: Store) -> Callable[..., str]:
    """Returns the page of a new run of the team with a conclusion."""

    def page(run: str, conclusion: Confirmation, *, judge: bool = True) -> str:
        store.insert("otel_traces", team(run))
        if judge:
            save(store, [judged(store, run, len(SAID), 1)])
        conclude(store, run, conclusion)
        return client.get(f"/runs/{run}").text

    return page


def test_a_proved_step_is_decisive_with_its_rank(client: httpx.Client) -> None:
    """It takes the place of the step that the judge alone has named."""
    page = client.get(f"/runs/{PROVED}").text
    assert "Decisive error: researcher, step 2 (confirmed by replay)" in said(page)
    assert "DECISIVE confirmed by replay" in step_of(page, 2)
    assert "DECISIVE" not in step_of(page, 1)
    assert "refuted by replay" in step_of(page, 1)
    assert "look" not in step_of(page, 1)
    assert "point of no return" in step_of(page, 4)
    assert page.count(">DECISIVE<") == 1


def test_v_stands_under_the_steps_with_counts_and_intervals(client: httpx.Client) -> None:
    page = client.get(f"/runs/{PROVED}").text
    assert "Replays from the start, with nothing kept: 7 of 8 (88 %, 95 %: 53 % to 98 %)" in said(
        page
    )
    for number, counts in {1: "6 of 8", 2: "3 of 8", 4: "0 of 8"}.items():
        assert f"Replays that keep all up to here: {counts} (" in step_of(page, number)
    assert "Replays that keep" not in step_of(page, 3)


def test_both_arms_the_evidence_and_the_difference_are_shown(client: httpx.Client) -> None:
    page = client.get(f"/runs/{PROVED}").text
    again, corrected = map(said, fixes_of(page))
    assert "step 1 researcher the same model, asked again 6 of 8 5 of 8 +12 % 0.4 of 60 1" in again
    assert "8 of 8 0 of 8 +100 % 312 of 60 0 confirmed by replay" in corrected
    assert "at most once in 312" in said(page)
    assert "<del>181</del><ins>118</ins>" in page
    assert "<del>362</del><ins>236</ins>" in page
    assert "48 replays, 1,310 live model calls, $0.4242." in said(page)


def fixes_of(page: str) -> list[str]:
    return page.split('class="tested-fixes"')[1].split("</table>", maxsplit=1)[0].split("<tr>")[2:]


def test_a_joint_fix_is_shown_with_all_its_steps(concluded: Callable[..., str]) -> None:
    """Pairs that were all alike prove it below the threshold; each part is compared with its answer."""
    part = FurtherFix(step=4, agent="planner", source="judge", fix_text="Other words.", result=True)
    joint = contrast(2, also=(part,), pairs=2, fix_successes=2, e_value=7.1)
    alone = contrast(2, fix_successes=0, keep_successes=0, pairs=2, e_value=1.0, effect=0.0)
    both = proof(status="overdetermined", origin=None, contrasts=(alone, joint), refuted=())
    page = concluded("91" * 16, both)
    single, together = map(said, fixes_of(page))
    assert "together they help" not in single
    assert "step 2 , step 4 researcher, planner a person's text, the judge's smallest" in together
    assert "2 of 2 0 of 2" in together
    assert "together they help" in together
    assert "were all alike" in said(page)
    assert "In place of the recorded answer of step 2 (a person's text): A night" in said(page)
    assert "In place of the recorded result of step 4" in said(page)
    assert page.count('class="text change"') == 2
    assert "<ins>Other" in page


@pytest.mark.parametrize("run", [PROVED, SHORT, UNSURE, HEALTHY, BARE])
def test_page_terminal_and_assistant_say_the_same(
    client: httpx.Client, store: Store, capsys: pytest.CaptureFixture[str], run: str
) -> None:
    page = client.get(f"/runs/{run}").text
    console = Console(width=1000)
    for part in run_view(load(store, run)):
        console.print(part)
    printed = said(capsys.readouterr().out)
    told = StoreReading(store, idle=60.0).run(run)["said"]
    sections = re.findall(r'class="(?:verdict|replays)">(.*?)</section>', page, re.DOTALL)
    shown = {
        said(words)
        for words in re.findall(
            r"<(?:p class=\"said-|summary)[^>]*>(.*?)</(?:p|summary)>", "".join(sections)
        )
    }
    written = {
        said(line.lstrip("* ")) for line in told.splitlines() if line and line[0] not in "|>#"
    }
    commands = {line for line in written if line.endswith("`")}
    assert shown
    assert {alike(line) for line in written - commands} == {alike(line) for line in shown}
    for sentence in shown:
        assert alike(sentence) in alike(printed), sentence
    for command in commands:
        effect, line = command[:-1].split(": `")
        assert effect in said(page)
        assert line in printed


def alike(text: str) -> str:
    """A text without blanks and signs of code; the end of a title, and a text in place of another, are markup on a page."""
    title = re.sub(r"(?<=\)):.*", "", text) if text.startswith("In place of") else text
    return re.sub(r"[\s`]|:$", "", title)


@pytest.mark.parametrize("status", get_args(ConfirmationStatus))
def test_a_conclusion_in_words(concluded: Callable[..., str], status: ConfirmationStatus) -> None:
    """Three of them may prove a step, two exclude a single step; else the judge's own keeps its rank."""
    run = f"{list(HEADINGS).index(status) + 0x70:032x}"
    page = concluded(run, proof(status=status, refuted=()))
    proves = status in {"confirmed", "repairable", "systematic"}
    spread = status in {"overdetermined", "diffuse"}
    assert HEADINGS[status] in said(page) or (proves and "Confirmed by replay" in said(page))
    assert ("DECISIVE confirmed by replay" in step_of(page, 2)) is proves
    assert ("DECISIVE" in step_of(page, 1)) is not (proves or spread)
    assert ("Origin, not proved" in said(page)) is not proves
    assert ("With 90 % probability the error is in" in said(page)) is not proves


def test_a_refuted_step_is_not_decisive(concluded: Callable[..., str]) -> None:
    refuted = proof(status="refuted", origin=None, point_of_no_return=None)
    page = concluded("9a" * 16, refuted)
    assert "No step stands out as the decisive error, and replays have refuted" in said(page)
    assert "refuted by replay" in step_of(page, 1)
    assert "DECISIVE" not in page


def test_a_point_of_no_return_alone_is_not_decisive(concluded: Callable[..., str]) -> None:
    unproved = proof(status="inconclusive", origin=None, contrasts=(), refuted=(), cost_usd=None)
    page = concluded("9b" * 16, unproved, judge=False)
    assert "DECISIVE" not in page
    assert "An earlier error that could still have been repaired is not excluded" in said(page)
    assert "1,310 live model calls, cost unknown." in said(page)


def test_a_conclusion_on_an_earlier_state_names_no_step(
    client: httpx.Client, store: Store, concluded: Callable[..., str]
) -> None:
    """A late span may have moved all steps."""
    run = "9c" * 16
    assert "DECISIVE" in concluded(run, proof(), judge=False)
    store.insert("otel_traces", [message(run, 9, "writer", "One more.")])
    page = client.get(f"/runs/{run}").text
    assert "DECISIVE" not in page
    assert "The run has changed since it was replayed" in said(page)


def test_texts_and_steps_of_a_conclusion_do_nothing(concluded: Callable[..., str]) -> None:
    """Models write fixes, and steps may lie outside of the run."""
    hostile = proof(
        text=HOSTILE,
        origin=10**6,
        origin_agent=HOSTILE,
        curve=tuple(rate(n, 1, 2, 0.1, 0.9) for n in range(-1, 5000)),
        contrasts=(contrast(10**6, source=HOSTILE, fix_text=HOSTILE + "x" * 1_000_000),),
        likely=tuple((n, 0.001) for n in range(900)),
    )
    page = concluded("9d" * 16, hostile, judge=False)
    for text in ("<script>document", "<img src", "\x1b"):
        assert text not in page
    assert "The first 60 of 5,001 tested steps." in page
    assert len(page) < 200_000
    diffuse = hostile.model_copy(update={"status": "diffuse"})
    assert "and 888 more" in concluded("9e" * 16, diffuse, judge=False)


@pytest.mark.parametrize(
    ("value", "alike", "words"),
    [
        (float("nan"), False, "give no evidence for the fix"),
        (0.0, False, "give no evidence for the fix"),
        (
            4.25,
            False,
            "at most once in 4.2; a confirmation needs once in 60, so this is not enough",
        ),
        (4.25, True, "all alike, so these pairs prove it for these answers of the model."),
        (60.0, False, "at most once in 60; a confirmation needs once in 60."),
        (float("inf"), False, "at most once in a million or more"),
    ],
)
def test_an_e_value_is_a_sentence(value: float, words: str, *, alike: bool) -> None:
    assert words in evidence_words(contrast(e_value=value), alike=alike)


def test_commands_are_offered_where_a_model_answered(client: httpx.Client) -> None:
    page = client.get(f"/runs/{PROVED}").text
    assert f"mast-trace replay {PROVED} -- COMMAND<" in page
    assert f"mast-trace replay {PROVED} --change keep:2" in page
    assert f"mast-trace replay {PROVED} --change fix:2=@answer.txt" in page
    assert f"mast-trace replay {PROVED} --change keep:0" not in page  # a person's words
    bare = client.get(f"/runs/{SHORT}").text
    assert "This run cannot be replayed: no model call of it was recorded." in bare
    assert "keep:" not in bare
    assert "are marked in short runs only" in said(client.get(f"/runs/{LONG}").text)


def test_a_copied_command_is_the_same_for_a_shell() -> None:
    """The name of a project is free text."""
    project = "a b; rm -rf ~ 'x' $(id)"
    for command in app.from_step("r1", project, 3):
        words = shlex.split(command.text)
        assert words[-3:] == [f"--project={project}", "--", "COMMAND"]
        assert words[:3] == ["mast-trace", "replay", "r1"]


def test_steps_are_compared_and_the_first_difference_is_marked(client: httpx.Client) -> None:
    page = client.get(f"/compare?run={PROVED}&run={TWIN}").text
    assert "They differ from step 2 . 1 step differs, 4 are only in A, 0 only in B." in said(page)
    first = page.split('id="first-difference"')[1].split("</li>")[0]
    assert "First difference : agent, text" in said(first)
    assert page.count("<strong>First difference</strong>") == 1
    assert "<ins>236</ins>" in first
    assert page.count("Same in both") == 2


def sent(client: httpx.Client, content: bytes, run: str = PROVED) -> httpx.Response:
    files = {"file": ("replay.json", content, "application/json")}
    return client.post(f"/runs/{run}/compare", files=files)


def test_a_run_of_a_file_is_compared_and_not_kept(client: httpx.Client, store: Store) -> None:
    """The file has the form of a downloaded run, which `mast-trace replay --out` writes as well."""
    whole = client.get(f"/runs/{PROVED}/download.json").content
    runs = store.query("SELECT count() AS n FROM mast_run_states")
    same = sent(client, whole)
    assert same.status_code == 200
    assert "The runs are equal, step by step." in said(same.text)
    shape = json.loads(whole)["trajectory"]
    shape["steps"][3]["text"] = HOSTILE
    other = sent(client, json.dumps(shape).encode())
    assert "They differ from step 3" in said(other.text)
    assert "<script>document" not in other.text
    assert store.query("SELECT count() AS n FROM mast_run_states") == runs


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[1, 2]", 400),
        (b'{"trajectory": {"trace_id": 1}}', 400),
        (b"[" * 100_000, 400),
        (b'{"trajectory": {"trace_id": "x", "steps": [{"kind": "no"}]}}', 400),
        (b"\xff\xfe\x00", 400),
        (b" " * (8 * 1024 * 1024 + 5000), 413),
    ],
    ids=["empty", "cut", "a list", "no run", "deep", "no step", "no text", "too large"],
)
def test_a_file_without_a_run_is_refused(client: httpx.Client, content: bytes, status: int) -> None:
    answer = sent(client, content)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_a_form_without_a_file_is_refused(client: httpx.Client) -> None:
    address = f"/runs/{PROVED}/compare"
    assert client.post(address, data={"file": "x"}).status_code == 400
    assert client.post(address, content=b"x" * 10).status_code == 400
    forged = {"origin": "https://evil.example"}
    assert client.post(address, content=b"{}", headers=forged).status_code == 403
    assert sent(client, b"{}", run="nope").status_code == 404


def test_an_untested_run_has_no_section(client: httpx.Client) -> None:
    assert 'id="replays"' not in client.get(f"/runs/{TWIN}").text
    assert Confirmation().status == "untested"
    assert FIX not in client.get(f"/runs/{TWIN}").text
