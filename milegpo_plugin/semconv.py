"""Attribute names of every dialect: constants only, one block per vocabulary.

A prefix ends with a dot and is followed by an index or a key.
"""

from __future__ import annotations

from typing import Final

# OpenTelemetry, general
EVENT_NAME: Final = "event.name"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"

# OpenTelemetry GenAI conventions
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
SYSTEM: Final = "gen_ai.system"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
PREVIOUS_RESPONSE_ID: Final = "gen_ai.request.previous_response.id"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_NAME: Final = "gen_ai.agent.name"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
OPERATION_DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
CHOICE_EVENT: Final = "gen_ai.choice"
MESSAGE_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CONTENT_PROMPT_EVENT: Final = "gen_ai.content.prompt"
CONTENT_COMPLETION_EVENT: Final = "gen_ai.content.completion"
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"

# Flattened GenAI attributes of older Traceloop and of AgentOps
PROMPT: Final = "gen_ai.prompt."
COMPLETION: Final = "gen_ai.completion."
PROMPT_TOKENS: Final = "gen_ai.usage.prompt_tokens"
COMPLETION_TOKENS: Final = "gen_ai.usage.completion_tokens"

# Traceloop
TRACELOOP_OPENAI_SCOPE: Final = "opentelemetry.instrumentation.openai.v"
TRACELOOP_OPENAI_KEY: Final = "gen_ai.openai.api_base"
TRACELOOP_LANGCHAIN_SCOPE: Final = "opentelemetry.instrumentation.langchain"
TRACELOOP_LANGGRAPH_KEY: Final = "traceloop.association.properties.langgraph_node"
TRACELOOP_ASSOCIATION: Final = "traceloop.association.properties."

# AgentOps
AGENTOPS_SPAN_KIND: Final = "agentops.span.kind"
AGENTOPS_CALL_SPAN: Final = "openai.chat.completion"
AGENTOPS_TOOL_CALL_SPAN: Final = "tool_call."
AGENTOPS_TOOL_INPUT: Final = "agentops.tool.input"
AGENTOPS_TOOL_OUTPUT: Final = "agentops.tool.output"
AGENTOPS_TOOL_NAME: Final = "tool.name"
AGENTOPS_TOOL_PARAMETERS: Final = "tool.parameters"
AGENTOPS_TOOL_CALL_ID: Final = "tool.call.id"

# Agent Lightning
AGL_ROLLOUT_ID: Final = "agentlightning.rollout_id"
AGL_ATTEMPT_ID: Final = "agentlightning.attempt_id"
AGL_SPANS: Final = "agentlightning."
AGL_EXCEPTION_SPAN: Final = "agentlightning.exception"
AGL_ANNOTATION_SPAN: Final = "agentlightning.annotation"
AGL_REWARD: Final = "agentlightning.reward."
AGL_LINK: Final = "agentlightning.link."
AGL_PROMPT_TOKEN_IDS: Final = "prompt_token_ids"
AGL_RESPONSE_TOKEN_IDS: Final = "response_token_ids"
AGL_LOGPROBS: Final = "logprobs.content"

# OpenInference
OI_SCOPE: Final = "openinference.instrumentation."
OI_SPAN_KIND: Final = "openinference.span.kind"
OI_INPUT_MESSAGES: Final = "llm.input_messages."
OI_OUTPUT_MESSAGES: Final = "llm.output_messages."
OI_INPUT_VALUE: Final = "input.value"
OI_OUTPUT_VALUE: Final = "output.value"
OI_MODEL: Final = "llm.model_name"
OI_INVOCATION_PARAMETERS: Final = "llm.invocation_parameters"
OI_FINISH_REASON: Final = "llm.finish_reason"
OI_PROMPT_TOKENS: Final = "llm.token_count.prompt"
OI_COMPLETION_TOKENS: Final = "llm.token_count.completion"
OI_REDACTED: Final = "__REDACTED__"
OI_JS_SCOPE: Final = "@arizeai/openinference-instrumentation-"
OI_LLM_SYSTEM: Final = "llm.system"
OI_TOOL_NAME: Final = "tool.name"
OI_TOOL_ID: Final = "tool.id"
OI_TOOL_CALL_ID: Final = "tool_call.id"
OI_TOOL_PARAMETERS: Final = "tool.parameters"
OI_AGENT_NAME: Final = "agent.name"
OI_GRAPH_NODE: Final = "graph.node.id"
OI_METADATA: Final = "metadata"
SESSION_ID: Final = "session.id"

# LiteLLM
LITELLM_CALL_SPAN: Final = "litellm_request"
LITELLM_RAW_SPAN: Final = "raw_gen_ai_request"
LITELLM_RAW: Final = "llm."
LITELLM_CALL_ID: Final = "litellm.call_id"

# Pydantic AI
PYDANTIC_AI_SCOPE: Final = "pydantic-ai"
PYDANTIC_AI_CALL_KEY: Final = "model_request_parameters"
PYDANTIC_AI_V2_ARGUMENTS: Final = "tool_arguments"
PYDANTIC_AI_V2_RESULT: Final = "tool_response"

# Logfire
LOGFIRE_SPAN_TYPE: Final = "logfire.span_type"
LOGFIRE_AGENTS_SCOPE: Final = "logfire.openai_agents"
LOGFIRE_TEMPLATE: Final = "logfire.msg_template"
LOGFIRE_SCRUBBED: Final = "logfire.scrubbed"

# Agent Lightning 1.0 gateway events
AGL_EVENT_TYPE: Final = "agentlightning.event.type"
AGL_EVENT_DATA: Final = "agentlightning.event.data"
AGL_DATA_ID: Final = "agentlightning.data_id"
AGL_MODEL_REQUEST_EVENT: Final = "model_request"
AGL_REWARD_EVENT: Final = "reward"
AGL_EXCEPTION_EVENT: Final = "exception"
AGL_OBSERVATION_EVENT: Final = "observation"
AGL_STATE_EVENT: Final = "state"
AGL_MILESTONE_EVENT: Final = "milestone"

# Model Context Protocol
MCP_METHOD: Final = "mcp.method.name"
MCP_TOOL_CALL: Final = "tools/call"

# AutoGen
AUTOGEN_SCOPE: Final = "autogen"

# smolagents
SMOLAGENTS_MAX_STEPS: Final = "smolagents.max_steps"

# Langfuse
LANGFUSE_TYPE: Final = "langfuse.observation.type"
LANGFUSE_INPUT: Final = "langfuse.observation.input"
LANGFUSE_OUTPUT: Final = "langfuse.observation.output"
LANGFUSE_MODEL: Final = "langfuse.observation.model.name"
LANGFUSE_USAGE: Final = "langfuse.observation.usage_details"
LANGFUSE_METADATA: Final = "langfuse.observation.metadata."
LANGFUSE_SESSION: Final = "langfuse.session.id"
LANGFUSE_TRACE_NAME: Final = "langfuse.trace.name"
LANGFUSE_TRACE_METADATA: Final = "langfuse.trace.metadata."
LANGFUSE_TRACE_TYPE: Final = "trace"
