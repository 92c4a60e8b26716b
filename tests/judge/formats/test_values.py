"""Numbers of tokens and results of tools are read alike, whichever tool wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from mast_trace_judge.transfer.formats.kinds import (
    bare_result,
    total_alone,
    underscored,
    usage_of,
    usage_of_models,
)

MOST = 2**40


@pytest.mark.parametrize(
    ("given", "found"),
    [
        *(
            ({spent: 5, made: 2}, (5, 2))
            for spent, made in [
                ("input_tokens", "output_tokens"),
                ("prompt_tokens", "completion_tokens"),
                ("prompt_token_count", "candidates_token_count"),
                ("promptTokenCount", "candidatesTokenCount"),
                ("tokens_sent", "tokens_received"),
                ("total_prompt_tokens", "total_completion_tokens"),
                ("inputTokens", "outputTokens"),
                ("promptTokens", "completionTokens"),
                ("input", "output"),
                ("input_token_count", "output_token_count"),
                ("InputTokenCount", "OutputTokenCount"),
            ]
        ),
        ({"input_tokens": 5}, (5, 0)),
        ({"output_tokens": 2}, (0, 2)),
        # Tokens from a cache stand beside the input, and are among it where the sum says so.
        *(
            ({"input_tokens": 5, read: 3, write: 4, "output_tokens": 2, **total}, (spent, 2))
            for read, write in [
                ("cache_read_input_tokens", "cache_creation_input_tokens"),
                ("cacheReadInputTokens", "cacheCreationInputTokens"),
            ]
            for total, spent in [({}, 12), ({"total_tokens": 7}, 5), ({"totalTokens": 14}, 12)]
        ),
        ({"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 9}, (5, 11)),
        (
            {"prompt_token_count": 5, "thoughts_token_count": 9, "candidates_token_count": 2},
            (5, 11),
        ),
        ({"total_token_count": 5, "prompt_token_count": 5, "thoughts_token_count": 9}, (5, 0)),
        ({"input_tokens": MOST - 1, "output_tokens": MOST}, (MOST - 1, 0)),
        ({"input_tokens": -1, "prompt_tokens": 5}, (5, 0)),
        ({"input_tokens": "5", "output_tokens": 2.0}, None),
        ({"input_tokens": 0, "output_tokens": 0}, None),
        ({"total_tokens": 7}, None),
        (None, None),
        ([5, 2], None),
    ],
)
def test_tokens_are_read_in_any_providers_words(given: Any, found: Any) -> None:
    assert usage_of(given) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        *(
            ({name: 7}, 7)
            for name in (
                *("total_tokens", "totalTokens", "total_token_count", "totalTokenCount", "total"),
            )
        ),
        ({"total_tokens": 0, "total": 4, "input_tokens": 0}, 4),
        ({"total_tokens": 7, "input_tokens": 5}, None),
        ({"total_tokens": MOST}, None),
        ({}, None),
        ("7", None),
    ],
)
def test_a_total_counts_where_nothing_else_is_told(given: Any, found: int | None) -> None:
    assert total_alone(given) == ({} if found is None else {"llm.token_count.total": found})


def test_the_tokens_of_models_add_up() -> None:
    one, other = {"prompt_tokens": 5, "completion_tokens": 2}, {"prompt_tokens": 3}
    assert usage_of_models({"a": one, "total_cost": 0.5, "b": other}) == (8, 2)
    assert usage_of_models({"total_cost": 0.5}) is usage_of_models([one]) is None


@pytest.mark.parametrize(
    ("result", "bare"),
    [
        *(({key: [1]}, [1]) for key in ("output", "result", "content")),
        *((each, each) for each in ({"answer": 1}, {"output": 1, "result": 2}, {}, [1], "a", None)),
    ],
)
def test_an_object_around_a_result_is_left_out_where_it_holds_nothing_else(
    result: Any, bare: Any
) -> None:
    assert bare_result(result) == bare


def test_names_of_many_capitals_have_a_spelling_with_underscores() -> None:
    assert underscored("parentObservationId") == "parent_observation_id"
