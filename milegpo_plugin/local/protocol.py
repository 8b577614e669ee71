"""The part of the OpenAI chat completions protocol that the policy server speaks.

Fields that change nothing here (``user``, ``metadata``, ``store`` …) are accepted and ignored,
as vLLM does; what would change the answer and is not supported is refused.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from milegpo_plugin.errors import MilegpoError
from milegpo_plugin.types import Message


class RequestError(MilegpoError, ValueError):
    """A request cannot be answered; becomes an OpenAI-style error body."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400):
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status

    def body(self) -> dict[str, Any]:
        """The JSON error body."""
        kind = "authentication_error" if self.status == 401 else "invalid_request_error"
        kind = "server_error" if self.status >= 500 else kind
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionTool(_Wire):
    """The function of a tool: its name and the JSON schema of its arguments."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_.\-]{1,128}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None

    @field_validator("parameters")
    @classmethod
    def _well_formed(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        """Properties by name, each an object; ``true`` (anything goes) is the empty schema."""
        if schema is None:
            return None
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise ValueError("properties must be an object and required an array")
        plain = {name: {} if rule is True else rule for name, rule in properties.items()}
        if not all(isinstance(rule, dict) for rule in plain.values()):
            raise ValueError("every property must have a schema")
        return {**schema, "properties": plain, "required": required}


class Tool(_Wire):
    """One tool of a request."""

    type: Literal["function"] = "function"
    function: FunctionTool


class StructuredOutputs(_Wire):
    """vLLM's ``structured_outputs``: at most one way to constrain the text."""

    choice: list[str] | None = Field(None, min_length=1)
    json_schema: dict[str, Any] | bool | None = Field(None, alias="json")
    regex: str | None = None

    @model_validator(mode="after")
    def _at_most_one(self) -> StructuredOutputs:
        if sum(value is not None for value in (self.choice, self.json_schema, self.regex)) > 1:
            raise ValueError("give one of choice, json and regex")
        return self


class StreamOptions(_Wire):
    """What a stream adds."""

    include_usage: bool = False


class ChatRequest(_Wire):
    """A chat completion request."""

    model: str | None = None
    messages: list[Message] = Field(min_length=1)
    temperature: float | None = Field(
        None, ge=0, le=10, allow_inf_nan=False, description="None: the server's"
    )
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    n: int = Field(1, ge=1, le=1)
    seed: int | None = None
    stop: str | list[str] | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    structured_outputs: StructuredOutputs | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    return_token_ids: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {key: value for key, value in values.items() if value is not None}

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
