"""A chat of AG2 classic in which a person answers, then leaves; the model is that of the environment."""

from __future__ import annotations

import os

from autogen import AssistantAgent, UserProxyAgent

import mast_trace

if __name__ == "__main__":
    mast_trace.instrument()
    model = {"model": "m", "base_url": os.environ["OPENAI_BASE_URL"], "api_key": "scripted"}
    clerk = AssistantAgent("clerk", llm_config={"config_list": [model], "cache_seed": None})
    user = UserProxyAgent("user", human_input_mode="ALWAYS", code_execution_config=False)
    user.initiate_chat(clerk, message="I want a kettle.")
