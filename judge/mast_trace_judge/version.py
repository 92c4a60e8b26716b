"""What a judge goes by: its version is equal for judges that would say the same of a run."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.local.attribution.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.resources.abc import Traversable

    from mast_trace_judge.config import JudgeConfig

_LOCAL = ("local", "assembly.py")
_MODEL = ("llm", "layer_fusion.py", "study/bench/opinions.py")
_SETTINGS = (
    "judge_temperature",
    "judge_max_output_tokens",
    "judge_window_tokens",
    "judge_clip_characters",
    "judge_candidates",
)
_COUNTED = (".py", ".md", ".json")


def own_profiles(config: JudgeConfig) -> tuple[Profile, ...]:
    """Read the user's own attribution profiles.

    Raises:
        ConfigurationError: one cannot be read, or the folder is not there.
    """
    folder = config.judge_profiles_dir
    if folder is None:
        return ()
    if not folder.is_dir():
        raise ConfigurationError(f"judge_profiles_dir: {folder} is no folder")
    return tuple(Profile.from_json(f.read_text("utf-8")) for f in sorted(folder.glob("*.json")))


def judge_version(config: JudgeConfig, profiles: Sequence[Profile] = ()) -> str:
    """Return a short hash of all that a verdict depends on beside the run.

    Rules, weights and the texts of this package; with a model also the prompts, the shapes of its
    answers, the models' names and what decides on how they are asked.
    """
    digest = hashlib.sha256()
    root = resources.files("mast_trace_judge")
    parts = _LOCAL + (_MODEL if config.uses_model else ())
    for part in parts:
        for name, content in _files(root / part, part):
            digest.update(f"{name}\0".encode() + content.replace(b"\r\n", b"\n") + b"\0")
    for profile in profiles:
        digest.update(profile.to_json().encode())
    if config.uses_model:
        settings = [f"{name}={getattr(config, name)}" for name in _SETTINGS]
        digest.update("\0".join([*config.models, *settings]).encode())
    return digest.hexdigest()[:12]


def _files(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    if place.is_file():
        if place.name.endswith(_COUNTED):
            yield name, place.read_bytes()
        return
    if place.is_dir():
        for child in sorted(place.iterdir(), key=lambda child: child.name):
            yield from _files(child, f"{name}/{child.name}")
