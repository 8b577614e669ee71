"""From a completion to OpenAI JSON, whole or as stream chunks, with vLLM's token ids."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from milegpo_plugin.local.chat import Reply, parse_reply
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.requests import Job
from milegpo_plugin.local.sampler import Completion

_UNFINISHED: Final = "\ufffd"


def completion_body(job: Job, completion: Completion, policy: Policy, model: str) -> dict[str, Any]:
    """The whole response of a chat completion."""
    reply = read_reply(job, completion, policy)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.content, "refusal": None, **_tool_calls(reply)},
        "logprobs": _logprobs(job, completion, policy, slice(None)),
        "finish_reason": _finish_reason(reply, completion),
        "stop_reason": None,
    }
    body = {**_envelope("chat.completion", model), "choices": [choice], "usage": usage(job, completion)}
    if job.token_ids:
        choice["token_ids"] = completion.tokens
        body["prompt_token_ids"] = job.generation.prompt
    return body


def read_reply(job: Job, completion: Completion, policy: Policy) -> Reply:
    """The response as text and tool calls, whose ids lead back to the completion."""
    text = _text(job, completion.tokens, policy)
    reply = parse_reply(text) if job.calls_tools else Reply(text, [])
    for call in reply.tool_calls:
        policy.records.name_call(call["id"], job.generation.prompt, completion.tokens)
    return reply


def usage(job: Job, completion: Completion) -> dict[str, int]:
    """Token counts."""
    prompt, response = len(job.generation.prompt), len(completion.tokens)
    return {"prompt_tokens": prompt, "completion_tokens": response, "total_tokens": prompt + response}


@dataclass
class ChunkWriter:
    """Writes a stream: text as it comes, tool calls whole at the end."""

    job: Job
    policy: Policy
    model: str
    _head: dict[str, Any] = field(init=False)
    _tokens_sent: int = field(default=0, init=False)
    _text_sent: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._head = _envelope("chat.completion.chunk", self.model)

    def first(self) -> dict[str, Any]:
        """The opening chunk: the role, and the prompt's token ids."""
        chunk = self._chunk({"role": "assistant", "content": ""})
        if self.job.token_ids:
            chunk["prompt_token_ids"] = self.job.generation.prompt
        return chunk

    def progress(self, completion: Completion, tokens: int) -> Iterator[dict[str, Any]]:
        """Chunks for the first ``tokens`` tokens; none while a tool call may be on its way."""
        if self.job.calls_tools:
            return
        text = _text(self.job, completion.tokens[:tokens], self.policy)
        ready = text[: len(text) - self._held_back(text)]
        if len(ready) > self._text_sent:
            yield self._delta({"content": ready[self._text_sent :]}, completion, tokens)
            self._text_sent = len(ready)

    def last(self, completion: Completion, *, include_usage: bool) -> Iterator[dict[str, Any]]:
        """What is left, the finish reason, and the usage when asked for."""
        reply = read_reply(self.job, completion, self.policy)
        delta: dict[str, Any] = {}
        if reply.content and len(reply.content) > self._text_sent:
            delta["content"] = reply.content[self._text_sent :]
        if reply.tool_calls:
            delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(reply.tool_calls)]
        reason = _finish_reason(reply, completion)
        yield self._delta(delta, completion, len(completion.tokens), finish_reason=reason)
        if include_usage:
            yield {**self._head, "choices": [], "usage": usage(self.job, completion)}

    def _held_back(self, text: str) -> int:
        """Characters at the end that may still change, or become a stop string."""
        broken = len(text) - len(text.rstrip(_UNFINISHED))
        partial = (
            size for stop in self.job.stops for size in range(1, len(stop)) if text.endswith(stop[:size])
        )
        return max(broken, *partial, 0)

    def _delta(
        self, delta: dict[str, Any], completion: Completion, tokens: int, finish_reason: str | None = None
    ) -> dict[str, Any]:
        chunk = self._chunk(delta, finish_reason)
        part = slice(self._tokens_sent, tokens)
        choice = chunk["choices"][0]
        choice["logprobs"] = _logprobs(self.job, completion, self.policy, part)
        if self.job.token_ids:
            choice["token_ids"] = completion.tokens[part]
        self._tokens_sent = tokens
        return chunk

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "choices": [choice]}


def _envelope(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}


def _text(job: Job, tokens: list[int], policy: Policy) -> str:
    text: str = policy.tokenizer.decode(tokens, skip_special_tokens=True)
    ends = [position for stop in job.stops if (position := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _tool_calls(reply: Reply) -> dict[str, Any]:
    return {"tool_calls": reply.tool_calls} if reply.tool_calls else {}


def _finish_reason(reply: Reply, completion: Completion) -> str | None:
    if reply.tool_calls and completion.finish_reason == "stop":
        return "tool_calls"
    return completion.finish_reason


def _logprobs(job: Job, completion: Completion, policy: Policy, part: slice) -> dict[str, Any] | None:
    if not job.logprobs:
        return None
    parts = (completion.tokens[part], completion.logprobs[part], completion.alternatives[part])
    content = [
        {
            **_token(token, logprob, policy),
            "top_logprobs": [_token(other, value, policy) for other, value in alternatives],
        }
        for token, logprob, alternatives in zip(*parts, strict=True)
    ]
    return {"content": content, "refusal": None}


def _token(token: int, logprob: float, policy: Policy) -> dict[str, Any]:
    text = policy.constraints.token_bytes(token)
    return {"token": text.decode(errors="replace"), "logprob": logprob, "bytes": list(text)}
