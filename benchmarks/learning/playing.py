"""Play many instances at once against the policy, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from benchmarks.learning.games import Instance
from milegpo_plugin.agl.rollouts import Collected, Task
from milegpo_plugin.local.chat import render_prompt
from milegpo_plugin.local.model import Policy
from milegpo_plugin.local.protocol import ChatRequest
from milegpo_plugin.local.requests import prepare
from milegpo_plugin.local.sampler import Batch, Completion, Generation, Row
from milegpo_plugin.local.settings import ServerSettings
from milegpo_plugin.types import Action, Message, Step, Trajectory


@dataclass(slots=True)
class Episode:
    """One rollout as it is played."""

    task_id: str
    number: int
    instance: Instance
    state: int = 0
    steps: list[Step] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return not self.instance.moves_N[self.state]

    def play(self, prompt: Sequence[int], completion: Completion, command: str) -> None:
        """Record the step and do it."""
        seen: list[Message] = [{"role": "user", "content": self.instance.text_N[self.state]}]
        self.steps.append(
            Step(
                observation=seen,
                action=Action(text=command),
                prompt_token_ids=list(prompt),
                response_token_ids=list(completion.tokens),
                logprobs=list(completion.logprobs),
            )
        )
        self.state = self.instance.moves_N[self.state][command]

    def finish(self) -> Trajectory:
        """The rollout, with reward 1 for a game that was won."""
        return Trajectory(
            task_id=self.task_id,
            rollout_id=f"{self.task_id}/{self.number}",
            reward=float(self.state == self.instance.goal),
            final_observation=self.instance.text_N[self.state],
            steps=self.steps,
        )


@dataclass(slots=True)
class Player:
    """Collects rollouts for the training loop.

    Args:
        policy: the model that plays.
        settings: limits of a request.
        instances: by task id.
        instruction: the system prompt.
        turns: longest rollout.
        temperature: of training and of validation.
    """

    policy: Policy
    settings: ServerSettings
    instances: Mapping[str, Instance]
    instruction: str
    turns: int
    temperature: tuple[float, float] = (1.0, 1.0)
    _asked: dict[tuple[str, int], tuple[ChatRequest, list[int]]] = field(default_factory=dict)
    """Request and prompt of each state seen so far: rollouts meet in states again and again."""

    async def __call__(
        self,
        tasks: Sequence[Task],
        *,
        repeats: int,
        validation: bool,
        on_progress: Callable[[int], None],
    ) -> Collected:
        """Play every task ``repeats`` times with the current policy."""
        start = time.monotonic()
        episodes = [
            Episode(task.task_id, number, self.instances[task.task_id])
            for task in tasks
            for number in range(repeats)
        ]
        for _ in range(self.turns):
            self._turn([episode for episode in episodes if not episode.over], self.temperature[validation])
        on_progress(len(episodes))
        seconds = time.monotonic() - start
        return Collected([episode.finish() for episode in episodes], [], seconds, seconds)

    def _turn(self, episodes: Sequence[Episode], temperature: float) -> None:
        """One step of every episode that is not over."""
        if not episodes:
            return
        generations = [self._generation(episode, temperature) for episode in episodes]
        for episode, generation, completion in zip(
            episodes, generations, sample(self.policy, generations), strict=True
        ):
            self.policy.records.add(
                generation.prompt, completion.tokens, completion.record(generation.temperature)
            )
            text = self.policy.tokenizer.decode(completion.tokens, skip_special_tokens=True)
            episode.play(generation.prompt, completion, text.strip())

    def _generation(self, episode: Episode, temperature: float) -> Generation:
        request, prompt = self._ask(episode)
        return prepare(request, self.policy, self.settings, temperature, prompt).generation

    def _ask(self, episode: Episode) -> tuple[ChatRequest, list[int]]:
        place = (episode.task_id, episode.state)
        if place not in self._asked:
            request = self._request(episode)
            self._asked[place] = request, render_prompt(self.policy.tokenizer, request.messages, None)
        return self._asked[place]

    def _request(self, episode: Episode) -> ChatRequest:
        return ChatRequest.model_validate(
            {
                "model": "policy",
                "messages": [
                    {"role": "system", "content": self.instruction},
                    {"role": "user", "content": episode.instance.text_N[episode.state]},
                ],
                "structured_outputs": {"choice": sorted(episode.instance.moves_N[episode.state])},
            }
        )


def sample(policy: Policy, generations: Sequence[Generation]) -> list[Completion]:
    """Decode all requests together; completions in the order of the requests."""
    rows = [Row(generation, policy) for generation in generations]
    with torch.inference_mode():
        batch = Batch(policy, rows)
        batch.retire()
        while batch.rows:
            batch.step()
            batch.retire()
    return [row.completion for row in rows]
