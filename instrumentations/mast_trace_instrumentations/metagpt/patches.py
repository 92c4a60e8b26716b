"""MetaGPT 0.8: teams, roles, messages of the environment, executed code, model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_trace_instrumentations.base import Instrumentor, Patch
from mast_trace_instrumentations.metagpt.agent import RoleWrappers
from mast_trace_instrumentations.metagpt.chat import ModelWrappers
from mast_trace_instrumentations.metagpt.run import TeamWrappers
from mast_trace_instrumentations.metagpt.tool import ActionWrappers

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        yield Patch(path, f"{name}._achat_completion", wrapper="complete")
        yield Patch(path, f"{name}._achat_completion_stream", wrapper="complete")
    yield Patch(
        "metagpt.provider.openai_api", "OpenAILLM._achat_completion_function", wrapper="complete"
    )
    yield Patch("metagpt.provider.base_llm", "BaseLLM._update_costs", wrapper="usage")
    yield Patch("metagpt.provider.anthropic_api", "AnthropicLLM._update_costs", wrapper="usage")
    yield Patch("metagpt.provider.ark_api", "ArkLLM._update_costs", wrapper="usage")
    yield Patch("metagpt.provider.human_provider", "HumanProvider.ask", wrapper="human")


class MetaGPTInstrumentor(TeamWrappers, RoleWrappers, ActionWrappers, ModelWrappers, Instrumentor):
    """Instruments MetaGPT 0.8."""

    framework = "metagpt"
    distributions = ("metagpt",)
    versions = ("0.8", "0.9")
    patches = (
        Patch("metagpt.team", "Team.run", wrapper="run_team"),
        Patch("metagpt.team", "Team._check_balance", wrapper="note_error"),
        Patch("metagpt.environment.base_env", "Environment.run", wrapper="run_environment"),
        Patch("metagpt.environment.base_env", "Environment.publish_message", wrapper="publish"),
        Patch("metagpt.roles.role", "Role.run", wrapper="run_role"),
        Patch("metagpt.roles.role", "Role._observe", wrapper="observe"),
        Patch("metagpt.actions.di.execute_nb_code", "ExecuteNbCode.run", wrapper="run_action"),
        Patch("metagpt.actions.run_code", "RunCode.run", wrapper="run_action"),
        Patch(
            "metagpt.actions.search_and_summarize", "SearchAndSummarize.run", wrapper="run_action"
        ),
        Patch("metagpt.actions.research", "CollectLinks.run", wrapper="run_action"),
        Patch("metagpt.actions.research", "WebBrowseAndSummarize.run", wrapper="run_action"),
        Patch("metagpt.actions.di.ask_review", "AskReview.run", wrapper="review"),
        *_provider_patches(),
    )

    def stopped(self) -> None:
        """Forget messages that wait for a run."""
        self._waiting.clear()


__all__ = ["MetaGPTInstrumentor"]
