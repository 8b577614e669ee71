"""From a chat request to a request of the sampler: prompt, constraint, limits, randomness."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from milegpo_plugin.local.chat import render_prompt
from milegpo_plugin.local.constraints import ConstraintCompiler, TokenMatcher
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.protocol import ChatRequest, RequestError
from milegpo_plugin.local.sampler import Completion, Generation
from milegpo_plugin.local.settings import ServerSettings


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A request that is ready to be sampled, and how its answer is written."""

    generation: Generation
    calls_tools: bool
    stops: tuple[str, ...]
    logprobs: bool
    token_ids: bool

    def watched(self, on_progress: Callable[[Completion], None]) -> Job:
        """The same job, with its progress reported."""
        return replace(self, generation=replace(self.generation, on_progress=on_progress))


def prepare(
    request: ChatRequest,
    policy: Policy,
    settings: ServerSettings,
    default_temperature: float,
    prompt: list[int] | None = None,
) -> Job:
    """Render, constrain and bound one request; ``prompt`` are its token ids when they are known already.

    Raises:
        RequestError: the prompt is too long, or the request contradicts itself.
    """
    tools = [tool.model_dump(exclude_none=True) for tool in request.tools or ()]
    choice = _tool_choice(request, settings)
    matcher = _matcher(request, choice, tools, policy.constraints)
    if prompt is None:
        prompt = render_prompt(policy.tokenizer, request.messages, tools)
    temperature = default_temperature if request.temperature is None else request.temperature
    return Job(
        generation=Generation(
            prompt=prompt,
            max_tokens=_max_tokens(request, len(prompt), policy, settings),
            uniforms=_uniforms(request, prompt, policy, settings) if temperature > 0 else None,
            temperature=temperature or 1.0,
            top_p=request.top_p if temperature > 0 else 1.0,
            matcher=matcher,
            stopped=_stop_test(request.stops, policy),
            top_logprobs=request.top_logprobs or 0,
        ),
        calls_tools=bool(tools) and choice != "none",
        stops=request.stops,
        logprobs=bool(request.logprobs) or settings.training,
        token_ids=bool(request.return_token_ids) or settings.training,
    )


def _tool_choice(request: ChatRequest, settings: ServerSettings) -> str | dict[str, Any]:
    if not request.tools:
        if request.tool_choice not in (None, "none", "auto"):
            raise RequestError("tool_choice needs tools", param="tool_choice")
        return "none"
    choice = request.tool_choice or "auto"
    return settings.auto_tool_choice if choice == "auto" else choice


def _matcher(
    request: ChatRequest,
    choice: str | dict[str, Any],
    tools: list[dict[str, Any]],
    compiler: ConstraintCompiler,
) -> TokenMatcher | None:
    structured = _structured(request, compiler)
    if choice in ("none", "auto"):
        return structured
    if structured is not None:
        raise RequestError(
            "a required tool call and structured output exclude each other", param="tool_choice"
        )
    return compiler.tool_call(_named(choice, tools) if isinstance(choice, dict) else tools)


def _named(choice: dict[str, Any], tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    function = choice.get("function")
    name = function.get("name") if choice.get("type") == "function" and isinstance(function, dict) else None
    found = [tool for tool in tools if tool["function"]["name"] == name]
    if not found:
        raise RequestError(f"tool_choice must name one of the tools, got {choice!r}", param="tool_choice")
    return found


def _structured(request: ChatRequest, compiler: ConstraintCompiler) -> TokenMatcher | None:
    wanted = request.structured_outputs
    if wanted is not None and wanted.choice is not None:
        return compiler.choice(wanted.choice)
    if wanted is not None and wanted.regex is not None:
        return compiler.regex(wanted.regex)
    if wanted is not None and wanted.json_schema is not None:
        return compiler.json_schema(wanted.json_schema)
    return _response_format(request.response_format or {"type": "text"}, compiler)


def _response_format(form: dict[str, Any], compiler: ConstraintCompiler) -> TokenMatcher | None:
    if form.get("type") == "text":
        return None
    if form.get("type") == "json_object":
        return compiler.json_schema({"type": "object"})
    described = form.get("json_schema")
    if form.get("type") == "json_schema" and isinstance(described, dict) and "schema" in described:
        return compiler.json_schema(described["schema"])
    raise RequestError(f"response_format is not supported, got {form!r}", param="response_format")


def _max_tokens(request: ChatRequest, prompt: int, policy: Policy, settings: ServerSettings) -> int:
    positions = policy.max_positions or settings.max_prompt_tokens + settings.max_response_tokens
    longest = min(settings.max_prompt_tokens, positions - 1)
    if prompt > longest:
        raise RequestError(
            f"This model's maximum context length is {longest} prompt tokens. However, your messages "
            f"have {prompt} tokens. Please shorten the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    asked = request.max_completion_tokens or request.max_tokens or settings.max_response_tokens
    return min(asked, settings.max_response_tokens, positions - prompt)


def _uniforms(
    request: ChatRequest, prompt: list[int], policy: Policy, settings: ServerSettings
) -> np.random.Generator:
    """Random numbers of one request.

    Without a seed they depend on the prompt and on how often it was asked, not on the order in
    which concurrent requests arrive, so that a run repeats.
    """
    if request.seed is not None:
        return np.random.default_rng(request.seed & 0xFFFFFFFFFFFFFFFF)
    digest = hashlib.blake2b(np.asarray(prompt, dtype=np.int64).tobytes(), digest_size=8).digest()
    stream = (settings.seed, policy.version, int.from_bytes(digest, "little"), policy.records.ask(prompt))
    return np.random.default_rng(stream)


def _stop_test(stops: tuple[str, ...], policy: Policy) -> Callable[[list[int]], bool] | None:
    if not stops:
        return None
    decode = policy.tokenizer.decode
    return lambda tokens: any(stop in decode(tokens, skip_special_tokens=True) for stop in stops)
