"""The documented flags of steps and rollouts: what is missing or odd, and the cure.

A flag says what the trace could not give. It never changes a value by itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Flag(NamedTuple):
    """One documented flag: ``meaning`` and ``cure`` for people."""

    meaning: str
    cure: str


ATTRIBUTE_LIMIT_CURE: Final = "export OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000 before the agent starts"

VALUE_LIMIT_CURE: Final = "unset OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
TOKEN_IDS_CURE: Final = "serve with vLLM, ask for return_token_ids, and trace the client with OpenInference"
LOST_SPANS_CURE: Final = "export OTEL_BSP_MAX_QUEUE_SIZE=65536, and call force_flush() on the tracer provider before the agent exits"
CONTENT_CURE: Final = "turn on content capture, or pass the log records with --logs"

FLAGS: Final[dict[str, Flag]] = {
    "failed": Flag(
        "the rollout ended with an infrastructure error, not with an outcome",
        "set on_failure (drop, zero or keep) in the credit config",
    ),
    "no_reward": Flag("no reward is known for the rollout", "pass --rewards FILE.jsonl or emit a reward"),
    "no_model_call": Flag("no model call was traced", "instrument the client that calls the model"),
    "task_from_message": Flag("the task is the first user message", "pass --task-attribute NAME"),
    "missing_final_observation": Flag(
        "the result of the last action was not recorded",
        "trace the tools too, or let the agent end with a text",
    ),
    "no_token_ids": Flag("the trace has no token ids: credit yes, training rows no", TOKEN_IDS_CURE),
    "no_sampling_record": Flag(
        "the policy server does not know this completion; its row is not trained",
        "let the agent call the base URL that the runner gives it",
    ),
    "error_status": Flag("the model call ended with an error status", "read the status message of the span"),
    "missing_completion": Flag(
        "the model call has no output", "turn on capture of outputs; read streams to their end"
    ),
    "no_task": Flag(
        "nothing names the task; the rollout is a group of its own", "pass --task-attribute NAME"
    ),
    "dropped_attributes": Flag("the SDK dropped attributes of the model call", ATTRIBUTE_LIMIT_CURE),
    "partial_history": Flag("the observation may lack messages that the span lost", ATTRIBUTE_LIMIT_CURE),
    "truncated_json": Flag("messages were cut in the middle of their JSON", VALUE_LIMIT_CURE),
    "missing_call": Flag(
        "the history shows assistant turns of model calls that were not recorded", LOST_SPANS_CURE
    ),
    "mid_conversation": Flag(
        "the first recorded call already has assistant turns in its history", LOST_SPANS_CURE
    ),
    "ambiguous_thread": Flag(
        "equal conversations ran at once; which one the call goes on with is a choice",
        "set session.id or gen_ai.conversation.id per rollout",
    ),
    "action_from_next_call": Flag(
        "the call lost its output; the action stands in the next call's history", ATTRIBUTE_LIMIT_CURE
    ),
    "invalid_arguments": Flag(
        "the arguments of a tool call are no JSON object; their text is kept",
        "none in the trace: the policy wrote them so; constrained decoding prevents it",
    ),
    "no_content": Flag("the instrumentation recorded no messages", CONTENT_CURE),
    "redacted_content": Flag(
        "the instrumentation hid messages, or parts of them",
        "unset OPENINFERENCE_HIDE_INPUTS/OUTPUTS; with Logfire, configure(scrubbing=False)",
    ),
    "stream_without_ids": Flag(
        "the streamed reply has no response id; copies are joined by content",
        "instrument the client below the framework too, or do not stream",
    ),
    "token_count_mismatch": Flag(
        "the number of token ids or log-probabilities differs from the reported usage",
        "let the server that samples report the usage, and no proxy count again",
    ),
    "orphan_parent": Flag(
        "the parent of a model call was not recorded; spans may have been lost", LOST_SPANS_CURE
    ),
    "shared_session": Flag(
        "several rollouts carry one session id; they are told apart by their first request",
        "set session.id or gen_ai.conversation.id per rollout",
    ),
    "missing_tool_calls": Flag(
        "there are more tool results than recorded tool calls: calls of this step, or a model call after it, "
        "are missing",
        LOST_SPANS_CURE,
    ),
    "unasked_tool_run": Flag(
        "a tool ran after this step that no recorded tool call asked for: a model call, or tool calls of "
        "this one, are missing",
        LOST_SPANS_CURE,
    ),
    "stale_attempt": Flag(
        "other attempts of this rollout were left out", "nothing to do: the last attempt with a reward counts"
    ),
    "copied_reward": Flag(
        "one reward was written on every step; it counts once, as the outcome",
        "emit the reward once, at the end",
    ),
}
