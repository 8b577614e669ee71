"""The body of an OpenAI chat completion or Responses reply → the fields of a ``ModelCall``.

Several instrumentations keep the raw body; it is where a server such as vLLM puts token ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from milegpo_plugin.adapters.messages import merge_replies, read_messages
from milegpo_plugin.adapters.values import as_count, as_integers, as_name, dig, logprob_values
from milegpo_plugin.types import JSON


def read_completion(body: JSON) -> dict[str, Any]:
    """The known fields of ``ModelCall`` in a raw reply body; nothing when it is no such body."""
    if not isinstance(body, Mapping):
        return {}
    fields = _chat_fields(body) if "choices" in body else _responses_fields(body)
    usage = body.get("usage")
    fields["response_id"] = as_name(body.get("id"))
    fields["model"] = as_name(body.get("model"))
    fields["prompt_tokens"] = as_count(dig(usage, "prompt_tokens") or dig(usage, "input_tokens"))
    fields["response_tokens"] = as_count(dig(usage, "completion_tokens") or dig(usage, "output_tokens"))
    return {name: value for name, value in fields.items() if value is not None}


def _chat_fields(body: Mapping[str, JSON]) -> dict[str, Any]:
    choice = dig(body, "choices", 0) or {}
    message = choice.get("message")
    return {
        "reply": merge_replies(read_messages([message])) if message else None,
        "finish_reason": as_name(choice.get("finish_reason")),
        "prompt_token_ids": as_integers(body.get("prompt_token_ids") or choice.get("prompt_token_ids")),
        "response_token_ids": as_integers(
            choice.get("token_ids")
            or dig(choice, "provider_specific_fields", "token_ids")
            or dig(body, "response_token_ids", 0)
        ),
        "logprobs": logprob_values(dig(choice, "logprobs", "content")),
    }


def _responses_fields(body: Mapping[str, JSON]) -> dict[str, Any]:
    return {
        "reply": merge_replies(read_messages(body.get("output"))),
        "finish_reason": as_name(body.get("status")),
        "previous_response_id": as_name(body.get("previous_response_id")),
    }
