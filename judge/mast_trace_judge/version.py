"""The judge's version, which is equal for judges that give the same verdicts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mast_trace.exceptions import ConfigurationError
from mast_trace_judge.fingerprint import installed_fingerprint
from mast_trace_judge.local.attribution.profile import Profile
from mast_trace_judge.plugins import OwnRule, own_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mast_trace_judge.config import JudgeConfig

_SETTINGS = (
    "judge_temperature",
    "judge_reasoning_effort",
    "judge_max_output_tokens",
    "judge_window_tokens",
    "judge_candidates",
    "judge_samples",
)


def own_profiles(config: JudgeConfig) -> tuple[Profile, ...]:
    """Read the user's own attribution profiles.

    Raises:
        ConfigurationError: one cannot be read, or the folder is missing.
    """
    folder = config.judge_profiles_dir
    if folder is None:
        return ()
    if not folder.is_dir():
        raise ConfigurationError(f"judge_profiles_dir: {folder} is no folder")
    return tuple(Profile.from_json(f.read_text("utf-8")) for f in sorted(folder.glob("*.json")))


def rules_of(config: JudgeConfig) -> tuple[OwnRule, ...]:
    """Return the rules of plugins and those of the configuration file, each with a version of its own."""
    return own_rules() + tuple(
        OwnRule(rule.name, rule.model_dump_json(), rule.mode, rule.find)
        for rule in config.judge_rules
    )


def judge_version(config: JudgeConfig, profiles: Sequence[Profile] = ()) -> str:
    """Return a short hash of everything that a verdict depends on beside the run.

    It covers the deciding code, with the shipped profiles and calibrations (see `fingerprint`), and
    the user's own profiles and rules; with a model also the code that asks it, the prompts, the models' names
    and the settings of the questions.

    Args:
        config: of the judge.
        profiles: the user's own.
    """
    digest = hashlib.sha256(installed_fingerprint(model=config.uses_model).encode())
    for profile in profiles:
        digest.update(profile.to_json().encode())
    for rule in rules_of(config):
        digest.update(f"{rule.name}\0{rule.version}\0{rule.code}\0".encode())
    if config.uses_model:
        settings = [f"{name}={getattr(config, name)}" for name in _SETTINGS]
        digest.update("\0".join([*config.models, *settings]).encode())
    return digest.hexdigest()[:12]
