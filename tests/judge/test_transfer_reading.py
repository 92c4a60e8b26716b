"""Files that cannot be imported say so."""

import pytest

from mast_trace_judge.transfer.reading import UnreadableFile, read_path


@pytest.mark.parametrize("text", ["[" * 100_000, "{\n", '{"a": ' + "[" * 100_000], ids=len)
def test_what_is_no_json_or_nested_too_deeply_is_named(tmp_path, text):
    path = tmp_path / "runs.json"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=r"runs\.json"):
        read_path(path)
