"""The prompts: versioned texts in files of their own."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template

_OF_A_READING = ("system", "read", "modes", "segment")
_VERSION = re.compile(r"\A<!-- version: (\d+) -->\n")


@dataclass(frozen=True)
class Prompt:
    """One prompt; ``text`` has ``$places`` to fill in."""

    name: str
    version: int
    text: str

    def fill(self, **values: object) -> str:
        """Return the text with every place filled in."""
        return Template(self.text).substitute({name: str(value) for name, value in values.items()})


@cache
def prompt(name: str) -> Prompt:
    """Read a prompt by its file's name.

    Raises:
        ValueError: its first line has no version.
    """
    file = resources.files(__name__) / f"{name}.md"
    content = file.read_text("utf-8").replace("\r\n", "\n")
    found = _VERSION.match(content)
    if found is None:
        raise ValueError(f"prompts/{name}.md does not begin with its version")
    return Prompt(name, int(found[1]), content[found.end() :].strip())


@cache
def prompt_of_readings() -> str:
    """Return a digest of all that a model is told of how to read a run; another text is another prompt."""
    texts = "\0".join(prompt(name).text for name in _OF_A_READING)
    return hashlib.sha256(texts.encode()).hexdigest()[:12]
