"""Writes YAML that people can read."""

from __future__ import annotations

from typing import Any

import yaml


class _Readable(yaml.SafeDumper):
    """Writes long texts as blocks, so that queries can be read."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Readable.add_representer(str, _text)


def as_yaml(shape: dict[str, Any]) -> str:
    """Return a file's text."""
    return yaml.dump(shape, Dumper=_Readable, sort_keys=False, width=100, allow_unicode=True)
