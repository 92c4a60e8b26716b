"""The patches of MetaGPT 0.8."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mast_trace.spans import Call, current_run
from mast_trace_instrumentations.base import Args, Instrumentor, Kwargs, Patch
from mast_trace_instrumentations.metagpt.agent import RoleTurns
from mast_trace_instrumentations.metagpt.chat import begin_chat, note_usage
from mast_trace_instrumentations.metagpt.message import begin_human, begin_review
from mast_trace_instrumentations.metagpt.run import Runs
from mast_trace_instrumentations.metagpt.tool import begin_action

_PROVIDERS = (
    ("openai_api", "OpenAILLM"),
    ("ark_api", "ArkLLM"),
    ("anthropic_api", "AnthropicLLM"),
    ("google_gemini_api", "GeminiLLM"),
    ("ollama_api", "OllamaLLM"),
    ("zhipuai_api", "ZhiPuAILLM"),
    ("qianfan_api", "QianFanLLM"),
    ("dashscope_api", "DashScopeLLM"),
    ("spark_api", "SparkLLM"),
    ("bedrock_api", "BedrockLLM"),
)


def _provider_patches() -> Iterator[Patch]:
    for module, name in _PROVIDERS:
        path = f"metagpt.provider.{module}"
        yield Patch(path, f"{name}._achat_completion", "begin_chat")
        yield Patch(path, f"{name}._achat_completion_stream", "begin_chat")
    yield Patch("metagpt.provider.openai_api", "OpenAILLM._achat_completion_function", "begin_chat")
    yield Patch("metagpt.provider.base_llm", "BaseLLM._update_costs", "begin_counting")
    yield Patch("metagpt.provider.anthropic_api", "AnthropicLLM._update_costs", "begin_counting")
    yield Patch("metagpt.provider.ark_api", "ArkLLM._update_costs", "begin_counting")
    yield Patch("metagpt.provider.human_provider", "HumanProvider.ask", "begin_human")


class MetaGPTInstrumentor(Instrumentor):
    """Instruments MetaGPT 0.8."""

    framework = "metagpt"
    distributions = ("metagpt",)
    versions = ("0.8", "0.9")
    patches = (
        Patch("metagpt.team", "Team.run", "begin_team"),
        Patch("metagpt.team", "Team._check_balance", "begin_noting"),
        Patch("metagpt.environment.base_env", "Environment.run", "begin_environment"),
        Patch("metagpt.environment.base_env", "Environment.publish_message", "begin_publishing"),
        Patch("metagpt.roles.role", "Role.run", "begin_turn"),
        Patch("metagpt.roles.role", "Role._observe", "begin_observing"),
        Patch("metagpt.actions.di.execute_nb_code", "ExecuteNbCode.run", "begin_action"),
        Patch("metagpt.actions.run_code", "RunCode.run", "begin_action"),
        Patch("metagpt.actions.search_and_summarize", "SearchAndSummarize.run", "begin_action"),
        Patch("metagpt.actions.research", "CollectLinks.run", "begin_action"),
        Patch("metagpt.actions.research", "WebBrowseAndSummarize.run", "begin_action"),
        Patch("metagpt.actions.di.ask_review", "AskReview.run", "begin_review"),
        *_provider_patches(),
    )

    def __init__(self) -> None:
        super().__init__()
        self._runs = Runs()

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Provide the configuration without which MetaGPT cannot be imported.

        The import also makes folders in the project's root, which is the current folder by default.
        """
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            settings = Path(folder, ".metagpt", "config2.yaml")
            settings.parent.mkdir()
            settings.write_text("llm: {api_type: openai, model: none, api_key: none}\n")
            names = ("HOME", "USERPROFILE", "METAGPT_PROJECT_ROOT")
            before = {name: os.environ.get(name) for name in names}
            os.environ.update(dict.fromkeys(names, folder))
            try:
                yield
            finally:
                for name, value in before.items():
                    os.environ.pop(name, None)
                    if value is not None:
                        os.environ[name] = value

    def stopped(self) -> None:
        """Forget messages that wait for a run."""
        self._runs.clear()

    def begin_team(self, team: Any, _args: Args, kwargs: Kwargs) -> Call:
        """Begin a team's run, the root."""
        idea = kwargs.get("idea") or team.idea
        return self._runs.begin(self.telemetry, type(team).__name__, team.env, idea=idea)

    def begin_environment(self, env: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Keep the error that `Team.run` swallows; without a team this is the root."""
        if current_run() is not None:
            return self._runs.noting()
        return self._runs.begin(self.telemetry, type(env).__name__, env)

    def begin_noting(self, _team: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Keep the error that `Team.run` swallows."""
        return self._runs.noting()

    def begin_publishing(self, env: Any, args: Args, kwargs: Kwargs) -> None:
        """Record a message with the roles that take it up."""
        self._runs.publish(self.telemetry, env, args[0] if args else kwargs["message"])

    def begin_turn(self, role: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Wrap a role's turn."""
        return RoleTurns(self.telemetry).begin(role)

    def begin_observing(self, role: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Begin the turn's span when the role observes something new."""
        return RoleTurns(self.telemetry).begin_observing(role)

    def begin_action(self, action: Any, args: Args, kwargs: Kwargs) -> Call:
        """Begin an action that is a tool call."""
        return begin_action(self.telemetry, action, args, kwargs)

    def begin_chat(self, provider: Any, args: Args, kwargs: Kwargs) -> Call | None:
        """Begin a request to a model."""
        return begin_chat(self.telemetry, provider, args[0] if args else kwargs.get("messages"))

    def begin_counting(self, _provider: Any, args: Args, kwargs: Kwargs) -> None:
        """Note the tokens that the framework counts."""
        note_usage(args[0] if args else kwargs.get("usage"))

    def begin_human(self, _provider: Any, args: Args, kwargs: Kwargs) -> Call:
        """Record the question to a person in a model's place, and the answer."""
        return begin_human(self.telemetry, args[0] if args else kwargs.get("msg"))

    def begin_review(self, _action: Any, _args: Args, _kwargs: Kwargs) -> Call:
        """Record a person's comment on a plan or on the result of a task."""
        return begin_review(self.telemetry)
