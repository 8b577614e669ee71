"""Settings of the credit, with the paper's presets.

Field names are words; the paper's symbols (``eta``, ``omega``, ``lambda`` …) are accepted
as aliases. Defaults are those of method.md: the strict (ALFWorld) calibration.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args

import yaml
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from milegpo_plugin.errors import ConfigError, InputNotFoundError

Estimator = Literal["milegpo", "graphgpo", "plangpo", "gigpo", "hgpo", "grpo", "rloo"]
Stage = Literal["pcc", "rcs", "md", "graph"]
Preset = Literal["alfworld", "webshop", "robust"]
OnFailure = Literal["drop", "zero", "keep"]
FilterGroups = Literal["none", "outcome", "credit"]
Mask = Literal["numbers", "uuids", "timestamps", "hex", "paths", "urls", "json_keys"]
StateFunction = Callable[[Any], str]

ESTIMATORS: Final[tuple[Estimator, ...]] = get_args(Estimator)
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

_PRESETS: Final[dict[str, dict[str, Any]]] = {
    "alfworld": {},
    "webshop": {
        "support_threshold": 0.5,
        "unsupported_factor": 0.5,
        "keep_branch": True,
        "mix_weight": 1.0,
        "norm": "mean",
    },
    "robust": {"require_success": True, "episode_weight": 0.3},
}


def _symbol(default: Any, symbol: str, name: str, description: str, **rules: Any) -> Any:
    """A field that the paper's ``symbol`` may also name."""
    return Field(
        default=default,
        validation_alias=AliasChoices(name, symbol),
        description=description,
        **rules,
    )


def _regular_expression(pattern: str | None) -> str | None:
    """The pattern, once it is known to compile."""
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"not a regular expression ({error})") from error
    return pattern


class StateConfig(BaseModel):
    """How a step's observation becomes the canonical key of its state (method.md §7).

    The default is the exact text after canonical white space. Given states are never altered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    white_space: Literal["collapse", "lines"] = Field(
        "collapse",
        description="collapse: any run of white space is one space; lines: keep spaces and lines (text maps)",
    )
    masks: tuple[Mask, ...] = Field((), description="kinds of volatile text to replace by a placeholder")
    pattern: str | None = Field(
        None,
        description="regular expression, or alfworld | webshop | react, that picks the state out of a prompt: "
        "its group 'state', else its groups, else the match; a text without a match counts as a whole",
    )
    tool_results_only: bool = Field(False, description="leave user messages out where there are tool results")
    function: StateFunction | str | None = Field(
        None, description="your own key: a callable Step -> str, or FILE.py:FUNCTION, or module:function"
    )
    history: int = Field(1, ge=1, description="a state is the last so many states of its rollout")
    action_pattern: str | None = Field(
        None,
        description="regular expression that picks the action out of the policy's text, for plangpo; "
        "None: inside the last <action> element, else the whole text",
    )
    similarity: float | None = Field(
        None, gt=0, le=1, description="merge the texts of a task that are at least this similar (1: equal)"
    )

    @field_validator("pattern", "action_pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        return _regular_expression(pattern)

    @model_validator(mode="after")
    def _function_stands_alone(self) -> StateConfig:
        if self.function is not None and (self.masks or self.pattern or self.tool_results_only):
            raise ValueError("function decides the key alone: drop masks, pattern and tool_results_only")
        return self

    @field_serializer("function", when_used="json-unless-none")
    def _function_name(self, function: StateFunction | str) -> str:
        return function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"


class CreditConfig(BaseModel):
    """Every setting of the credit (method.md §6, table).

    Raises:
        ConfigError: from :meth:`preset`, :meth:`from_file` and :meth:`load` when a name
            or value is not allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    estimator: Estimator = Field("milegpo", description="how a rollout's outcome becomes step advantages")
    stage: Stage = Field("pcc", description="how far milegpo goes: graph, then md, rcs, pcc")
    success_threshold: float = _symbol(
        0.0, "theta_r", "success_threshold", "success is reward > threshold", allow_inf_nan=False
    )
    on_failure: OnFailure = Field(
        "drop", description="a failed rollout is dropped, counted as reward 0, or kept"
    )
    states: StateConfig = Field(StateConfig(), description="how an observation becomes the key of a state")

    return_scale: float = _symbol(10.0, "c", "return_scale", "scale of the graph return", gt=0)
    graph_discount: float = _symbol(0.2, "gamma_g", "graph_discount", "base of goal distance", gt=0, le=1)
    potential_discount: float = _symbol(
        1.0, "gamma_phi", "potential_discount", "discount of the next potential", gt=0, le=1
    )
    shaping_weight: float = _symbol(
        0.25, "lambda", "shaping_weight", "weight of the potential differences", ge=0
    )
    milestone_weight: float = _symbol(
        1.0, "w_plus", "milestone_weight", "weight of the milestone potential", ge=0
    )
    trap_weight: float = _symbol(0.25, "w_minus", "trap_weight", "weight of the trap potential", ge=0)
    potential_decay: float = _symbol(
        0.2, "omega", "potential_decay", "decay of a potential per edge", gt=0, lt=1
    )

    success_lift_weight: float = _symbol(
        1.0, "w_s", "success_lift_weight", "weight of the success lift", ge=0
    )
    coverage_weight: float = _symbol(1.0, "w_m", "coverage_weight", "weight of success coverage", ge=0)
    centrality_weight: float = _symbol(0.25, "w_c", "centrality_weight", "weight of degree centrality", ge=0)
    failure_lift_weight: float = _symbol(
        1.0, "w_f", "failure_lift_weight", "weight of the failure lift", ge=0
    )
    loop_weight: float = _symbol(0.25, "w_l", "loop_weight", "weight of looping", ge=0)
    min_support: int = Field(1, ge=1, description="rollouts that must visit a milestone candidate")
    min_trap_visits: int = Field(2, ge=1, description="failed rollouts that must visit a trap")
    min_trap_score: float = Field(0.1, ge=0, description="least score of an admitted trap")

    progress_distance_weight: float = _symbol(
        1.0, "alpha_d", "progress_distance_weight", "distance part of progress", ge=0
    )
    progress_success_weight: float = _symbol(
        1.0, "alpha_s", "progress_success_weight", "success part of progress", ge=0
    )
    progress_failure_weight: float = _symbol(
        1.0, "alpha_f", "progress_failure_weight", "failure part of progress", ge=0
    )
    branch_weight: float = _symbol(1.0, "w_bc", "branch_weight", "weight of branch evidence", ge=0)
    progress_weight: float = _symbol(1.0, "w_pg", "progress_weight", "weight of progress evidence", ge=0)
    calibration_weight: float = _symbol(
        1.0, "w_pcc", "calibration_weight", "strength of the calibration", ge=0
    )
    support_threshold: float = _symbol(
        1.1, "theta_m", "support_threshold", "coverage that alone keeps a candidate", ge=0
    )
    unsupported_factor: float = _symbol(
        0.0, "rho", "unsupported_factor", "factor of a candidate without evidence", ge=0, le=1
    )
    keep_branch: bool = _symbol(False, "kappa_bc", "keep_branch", "branch evidence alone keeps a candidate")
    mix_weight: float = _symbol(0.2, "eta", "mix_weight", "share of the shaped advantage", ge=0, le=1)
    norm: Literal["mean_std", "mean"] = Field(
        "mean_std", description="centre only, or centre and scale by the std"
    )
    step_weight: float = _symbol(1.0, "w_step", "step_weight", "weight of step credit", ge=0)
    episode_weight: float = _symbol(
        1.0, "w_episode", "episode_weight", "weight of the rollout's own score", ge=0
    )
    episode_statistics: Literal["rollout", "row"] = Field(
        "rollout", description="one vote per rollout, or one per step as trainers that count rows do"
    )
    reliability: Literal["empirical", "lower_bound"] = Field(
        "empirical", description="lower_bound weights milestones and branches by their Wilson intervals"
    )
    require_success: bool = Field(
        False, description="no step credit in groups without a success; plangpo never gives any"
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="confidence of every Wilson interval")

    gigpo_discount: float = Field(0.95, gt=0, le=1, description="discount of GiGPO's and HGPO's return-to-go")
    hgpo_history: int = Field(2, ge=0, description="K: longest history of HGPO's nested groups")
    hgpo_alpha: float = Field(1.0, ge=0, description="exponent of HGPO's weights (k+1)^alpha")
    hgpo_episode_weight: float = Field(0.0, ge=0, description="weight of the rollout's own score in HGPO")
    plan_pseudo_count: float = Field(0.3, ge=0, description="worthless outcomes imagined for each action")
    plan_episode_weight: float = Field(
        0.3, ge=0, description="weight of the rollout's own score in PlanGPO, where a state has one step"
    )
    filter_groups: FilterGroups = Field(
        "none",
        description="what is not trained: groups whose rollouts score alike (outcome, as DAPO does), "
        "or only those of them that step credit does not tell apart either (credit)",
    )
    invalid_action_penalty: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="taken off the advantage of a step with an invalid action"
    )
    invalid_action_pattern: str | None = Field(
        None, description="regular expression; an action is invalid if the observation that follows matches"
    )

    @field_validator("invalid_action_pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        return _regular_expression(pattern)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> CreditConfig:
        """The paper's settings for ``alfworld`` or ``webshop``, or ours (``robust``), with ``changes`` on top."""
        if name not in _PRESETS:
            raise ConfigError(f"preset must be one of {', '.join(_PRESETS)}, got {name!r}")
        return cls.load({**_PRESETS[name], **changes})

    @classmethod
    def load(cls, values: dict[str, Any]) -> CreditConfig:
        """Validate a plain mapping; the error names the field, the rule and the value."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(f"credit config: {describe(error)}") from error

    @classmethod
    def from_file(cls, path: str | Path) -> CreditConfig:
        """Read a YAML mapping; ``preset: NAME`` in it is applied first."""
        values = read_yaml(path)
        preset = values.pop("preset", None)
        return cls.preset(preset, **values) if preset else cls.load(values)


def describe(error: ValidationError) -> str:
    """A pydantic error as one line: ``field: rule, got value``."""
    parts = []
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"]) or "value"
        parts.append(f"{where}: {item['msg'].lower()}, got {item['input']!r}")
    return "; ".join(parts)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds one mapping.

    Raises:
        InputNotFoundError: the file does not exist.
        ConfigError: it is not YAML, or not a mapping.
    """
    file = Path(path)
    if not file.is_file():
        raise InputNotFoundError(f"{file}: no such file")
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: must hold a mapping of settings, got {type(values).__name__}")
    return values
