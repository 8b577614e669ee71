"""The learner: clipped policy gradient on the policy's own decisions.

It scores each response under the very mask and temperature that the sampler drew it from, so
on fresh data the importance ratio is 1. Every quantity of an update depends on the rows'
content and the seed, not on the order in which the rows arrive.

Axis suffixes: ``_N`` free tokens, ``_V`` vocabulary.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from peft import PeftModel
from torch import Tensor

from milegpo_plugin.errors import TrainingError
from milegpo_plugin.local.distribution import entropy, log_distribution
from milegpo_plugin.local.losses import clipped_policy_loss, k3, token_weights
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.packing import Example, Microbatch, match_records, microbatches, pack
from milegpo_plugin.local.settings import LearnerSettings
from milegpo_plugin.rows import RowBatch


@dataclass
class _Tally:
    """Sums over the free tokens of an update."""

    tokens: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    grad_norms: list[float] = field(default_factory=list)
    ratio_max_dev: float | None = None

    def add(self, **values_N: Tensor) -> None:
        self.tokens += len(next(iter(values_N.values())))
        for name, value_N in values_N.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value_N.detach().sum())

    def means(self) -> dict[str, float]:
        return {name: total / max(self.tokens, 1) for name, total in self.sums.items()}


class Learner:
    """Changes the weights of a policy from rows with advantages.

    Args:
        policy: its ``records`` must hold the rows' responses.
        settings: see :class:`LearnerSettings`.
    """

    def __init__(self, policy: Policy, settings: LearnerSettings | None = None):
        self.policy = policy
        self.settings = settings or LearnerSettings()
        self.iteration = 0
        self._weights = [weight for _, weight in policy.trainable()]
        self._optimizer = torch.optim.AdamW(
            self._weights, lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self._reference = self._frozen_copy()

    def update(self, rows: RowBatch) -> dict[str, float]:
        """Learn from the rows of one iteration.

        Returns:
            ``loss, policy_loss, kl, entropy, clip_fraction, approx_kl`` (means over free tokens),
            ``grad_norm`` (mean before clipping), ``ratio_max_dev`` (largest ``|ratio - 1|`` of the
            first minibatch, before any change), ``learning_rate, rows, tokens, seconds``, and
            ``skipped_...`` counts of rows that were left out. A mean without tokens is left out.

        Raises:
            TrainingError: a loss or gradient is not finite; that step is not taken.
        """
        started = time.monotonic()
        examples, skipped = match_records(rows, self.policy.records)
        rate = self._set_rate()
        with self.policy.gate.updating():
            tally = self._learn(self._scaled(examples))
            self.policy.version += 1
        self.iteration += 1
        return {
            **tally.means(),
            **({"grad_norm": float(np.mean(tally.grad_norms))} if tally.grad_norms else {}),
            **({} if tally.ratio_max_dev is None else {"ratio_max_dev": tally.ratio_max_dev}),
            "learning_rate": rate,
            "rows": float(len(examples)),
            "tokens": float(sum(len(example.free_N) for example in examples)),
            **{f"skipped_{reason}": float(count) for reason, count in skipped.items()},
            "seconds": time.monotonic() - started,
        }

    @torch.no_grad()
    def score(self, rows: RowBatch) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Log-probabilities of each usable row's free tokens: the sampler's and the policy's now."""
        examples, _ = match_records(rows, self.policy.records)
        scores: list[Any] = [None] * len(examples)
        with self.policy.gate.updating():
            for indices in microbatches(examples, self.settings.microbatch_tokens):
                batch = self._pack([examples[index] for index in indices])
                chosen_N = _chosen(self._log_distribution(batch), batch).cpu().numpy()
                for row, index in enumerate(indices):
                    scores[index] = (examples[index].logprobs_N, chosen_N[batch.row_N.cpu().numpy() == row])
        return scores

    def state_dict(self) -> dict[str, Any]:
        """What an identical continuation needs besides the policy and the settings.

        Row order and learning rate follow from the seed and the iteration.
        """
        return {
            "iteration": self.iteration,
            "optimizer": self._optimizer.state_dict(),
            "reference": None if self._reference is None else self._reference.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`."""
        self.iteration = state["iteration"]
        self._optimizer.load_state_dict(state["optimizer"])
        if self._reference is not None and state["reference"] is not None:
            self._reference.load_state_dict(state["reference"])

    def _set_rate(self) -> float:
        """The learning rate of this iteration, given to the optimizer."""
        total = self.settings.total_iterations
        share = 1.0 if total is None else max(1.0 - self.iteration / total, 0.0)
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * share
        return self.settings.learning_rate * share

    def _frozen_copy(self) -> Any | None:
        """The reference policy; with adapters it is the model without them."""
        if self.settings.kl_coefficient == 0 or isinstance(self.policy.module, PeftModel):
            return None
        return copy.deepcopy(self.policy.module).requires_grad_(False)

    def _scaled(self, examples: Sequence[Example]) -> list[Example]:
        """Advantages over their root mean square, within the bound."""
        advantages = np.array([example.advantage for example in examples], dtype=np.float64)
        if not self.settings.scale_advantages or not advantages.any():
            return list(examples)
        bound = self.settings.max_advantage
        scaled = np.clip(advantages / np.sqrt(np.mean(advantages**2)), -bound, bound)
        return [replace(one, advantage=float(value)) for one, value in zip(examples, scaled, strict=True)]

    def _learn(self, examples: Sequence[Example]) -> _Tally:
        tally = _Tally()
        order = np.random.default_rng((self.settings.seed, self.iteration))
        for _ in range(self.settings.epochs):
            shuffled = order.permutation(len(examples))
            for start in range(0, len(examples), self.settings.minibatch_rows):
                chosen = shuffled[start : start + self.settings.minibatch_rows]
                self._step([examples[index] for index in chosen], tally)
        return tally

    def _step(self, examples: Sequence[Example], tally: _Tally) -> None:
        """One optimizer step; gradients accumulate over microbatches."""
        self._optimizer.zero_grad(set_to_none=True)
        tokens = sum(len(example.free_N) for example in examples)
        first = not tally.grad_norms
        for indices in microbatches(examples, self.settings.microbatch_tokens):
            batch = self._pack([examples[index] for index in indices])
            share = (
                len(batch.token_N) / tokens
                if self.settings.loss_mean == "token"
                else len(indices) / len(examples)
            )
            loss, deviation = self._loss(batch, tally)
            self._require_finite("loss", loss.detach(), tally)
            torch.autograd.backward(loss * share)
            if first:
                tally.ratio_max_dev = max(tally.ratio_max_dev or 0.0, deviation)
        norm = torch.nn.utils.clip_grad_norm_(self._weights, self.settings.max_grad_norm)
        self._require_finite("gradient norm", norm, tally)
        self._optimizer.step()
        tally.grad_norms.append(float(norm))

    def _loss(self, batch: Microbatch, tally: _Tally) -> tuple[Tensor, float]:
        """Mean loss of a microbatch, and its largest deviation of the ratio from 1."""
        settings = self.settings
        log_NV = self._log_distribution(batch)
        logprob_N = _chosen(log_NV, batch)
        log_ratio_N = logprob_N - batch.old_logprobs_N
        ratio_N = log_ratio_N.exp()
        policy_N = clipped_policy_loss(
            ratio_N, batch.advantage_N, clip_low=settings.clip_low, clip_high=settings.clip_high
        )
        entropy_N = entropy(log_NV)
        kl_N = self._kl(batch, logprob_N)
        loss_N = policy_N + settings.kl_coefficient * kl_N - settings.entropy_coefficient * entropy_N
        loss = (loss_N * token_weights(batch.row_N, settings.loss_mean)).sum()
        deviation_N = (ratio_N.detach() - 1.0).abs()
        tally.add(
            loss=loss_N,
            policy_loss=policy_N,
            kl=kl_N,
            entropy=entropy_N,
            clip_fraction=_clipped(ratio_N, batch.advantage_N, settings),
            approx_kl=k3(log_ratio_N),
        )
        return loss, float(deviation_N.max())

    def _kl(self, batch: Microbatch, logprob_N: Tensor) -> Tensor:
        if self.settings.kl_coefficient == 0:
            return torch.zeros_like(logprob_N)
        with torch.no_grad(), self._as_reference() as module:
            reference_N = _chosen(self._log_distribution(batch, module), batch)
        return k3(reference_N - logprob_N)

    @contextmanager
    def _as_reference(self) -> Iterator[Any]:
        if self._reference is not None:
            yield self._reference
            return
        with self.policy.module.disable_adapter():
            yield self.policy.module

    def _log_distribution(self, batch: Microbatch, module: Any | None = None) -> Tensor:
        logits = self.policy.logits(batch.ids, batch.attended, keep=batch.columns, module=module)
        return log_distribution(logits[batch.row_N, batch.column_N], batch.allowed_NV, batch.temperature_N)

    def _pack(self, examples: Sequence[Example]) -> Microbatch:
        policy = self.policy
        filler = int(policy.tokenizer.eos_token_id)
        return pack(examples, filler=filler, vocabulary=policy.vocabulary, device=policy.device)

    def _require_finite(self, what: str, value: Tensor, tally: _Tally) -> None:
        if not bool(torch.isfinite(value)):
            self._optimizer.zero_grad(set_to_none=True)
            step = len(tally.grad_norms)
            raise TrainingError(
                f"update {self.iteration}, optimizer step {step}: the {what} must be finite, got "
                f"{float(value)}; the step was not taken. Lower learner.learning_rate or max_grad_norm"
            )


def _chosen(log_NV: Tensor, batch: Microbatch) -> Tensor:
    return log_NV.gather(-1, batch.token_N[:, None]).squeeze(-1)


def _clipped(ratio_N: Tensor, advantage_N: Tensor, settings: LearnerSettings) -> Tensor:
    """Where the clipping stops the gradient."""
    above_N = (ratio_N > 1.0 + settings.clip_high) & (advantage_N > 0)
    below_N = (ratio_N < 1.0 - settings.clip_low) & (advantage_N < 0)
    return (above_N | below_N).float()
