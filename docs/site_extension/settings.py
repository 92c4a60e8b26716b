"""Reference of the settings, from the classes that read them."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from mast_trace_collector.config import CollectorConfig
from mast_trace_collector.settings import ProcessSettings, variable_of
from mast_trace_dashboards.alerts.config import AlertConfig
from mast_trace_dashboards.local.announcement import UpConfig
from mast_trace_dashboards.web.config import WebConfig
from mast_trace_judge.config import JudgeConfig, WorkerConfig
from mast_trace_judge.pricing import PriceConfig
from site_extension.markdown import cell, table

CLASSES: tuple[type[ProcessSettings], ...] = (
    UpConfig,
    WebConfig,
    CollectorConfig,
    JudgeConfig,
    WorkerConfig,
    PriceConfig,
    AlertConfig,
)


def settings() -> str:
    """Return Markdown: a table for each table of the configuration file."""
    return "\n".join(f"## [{each.table}]\n\n{_table(each)}" for each in CLASSES)


def _table(config: type[ProcessSettings]) -> str:
    rows = [
        (
            f"`{name}`<br>`{variable_of(name)}`",
            cell(field.description or ""),
            _type(field.annotation),
            _default(field),
        )
        for name, field in config.model_fields.items()
    ]
    return table(("setting and variable", "meaning", "type", "default"), rows)


def _type(annotation: Any) -> str:
    """Return a type's name as a reader of TOML knows it."""
    origin = typing.get_origin(annotation)
    parts = [each for each in typing.get_args(annotation) if each is not type(None)]
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in parts)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(dict.fromkeys(map(_type, parts)))
    if origin is typing.Annotated:
        return _type(parts[0])
    if origin in {tuple, list, frozenset, set}:
        return "list"
    named = {bool: "true or false", int: "integer", float: "number", str: "text", Path: "path"}
    for known, name in named.items():
        if isinstance(annotation, type) and issubclass(annotation, known):
            return name
    return "text"


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or value in ("", (), [], {}):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list | tuple | frozenset):
        value = ", ".join(map(str, value))
    text = str(getattr(value, "value", value))
    return f"`{re.sub('^' + re.escape(str(Path.home())), '~', text)}`" if text else ""
