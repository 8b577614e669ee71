"""One file per dialect: what each instrumentation writes, read into one normal form.

``DIALECTS`` is the registry. A span belongs to the first dialect that recognises it, so the
general dialects stand last.
"""

from __future__ import annotations

from typing import Final

from milegpo_plugin.adapters.agentlightning import AgentLightning
from milegpo_plugin.adapters.agentops import AgentOps
from milegpo_plugin.adapters.agl_events import AglEvents, Declared, read_declared
from milegpo_plugin.adapters.autogen import AutoGen
from milegpo_plugin.adapters.base import AgentScope, Dialect, ModelCall, SpanKey, SpanTree, ToolRun
from milegpo_plugin.adapters.genai_any import GenAIAny
from milegpo_plugin.adapters.genai_langchain import GenAILangChain
from milegpo_plugin.adapters.genai_openai import GenAIOpenAI
from milegpo_plugin.adapters.genai_openai_agents import GenAIOpenAIAgents
from milegpo_plugin.adapters.langfuse import Langfuse
from milegpo_plugin.adapters.litellm import LiteLLMRaw, LiteLLMRequest
from milegpo_plugin.adapters.logfire_openai_agents import LogfireOpenAIAgents
from milegpo_plugin.adapters.mcp import MCP
from milegpo_plugin.adapters.openai_v2 import OpenAIV2
from milegpo_plugin.adapters.openinference_any import OpenInferenceAny
from milegpo_plugin.adapters.openinference_crewai import OpenInferenceCrewAI
from milegpo_plugin.adapters.openinference_langchain import OpenInferenceLangChain
from milegpo_plugin.adapters.openinference_litellm import OpenInferenceLiteLLM
from milegpo_plugin.adapters.openinference_openai import OpenInferenceOpenAI
from milegpo_plugin.adapters.openinference_openai_agents import OpenInferenceOpenAIAgents
from milegpo_plugin.adapters.openinference_smolagents import OpenInferenceSmolagents
from milegpo_plugin.adapters.pydantic_ai import PydanticAI
from milegpo_plugin.adapters.rewards import RewardSignal, read_rewards
from milegpo_plugin.adapters.traceloop_langchain import TraceloopLangChain
from milegpo_plugin.adapters.traceloop_old import TraceloopOld
from milegpo_plugin.adapters.traceloop_openai import TraceloopOpenAI
from milegpo_plugin.types import Span

__all__ = [
    "DIALECTS",
    "AgentScope",
    "Declared",
    "Dialect",
    "ModelCall",
    "RewardSignal",
    "SpanKey",
    "SpanTree",
    "ToolRun",
    "dialect_of",
    "read_declared",
    "read_rewards",
]

DIALECTS: Final[tuple[Dialect, ...]] = (
    AglEvents(),
    AgentLightning(),
    AgentOps(),
    OpenInferenceOpenAI(),
    OpenInferenceLangChain(),
    OpenInferenceOpenAIAgents(),
    OpenInferenceSmolagents(),
    OpenInferenceLiteLLM(),
    OpenInferenceCrewAI(),
    MCP(),
    LogfireOpenAIAgents(),
    Langfuse(),
    AutoGen(),
    LiteLLMRequest(),
    LiteLLMRaw(),
    TraceloopOpenAI(),
    TraceloopLangChain(),
    OpenAIV2(),
    GenAIOpenAI(),
    GenAILangChain(),
    GenAIOpenAIAgents(),
    PydanticAI(),
    OpenInferenceAny(),
    GenAIAny(),
    TraceloopOld(),
)
_RECOGNISERS: Final = tuple((dialect.recognises, dialect) for dialect in DIALECTS)


def dialect_of(span: Span) -> Dialect | None:
    """The dialect that ``span`` belongs to, or None when nobody knows it."""
    for recognises, dialect in _RECOGNISERS:
        if recognises(span):
            return dialect
    return None
