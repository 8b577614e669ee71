"""Finite MDPs with a goal: random ones with bottlenecks, loops, dead ends, ties and slip.

State 0 is the start and the last state is the goal. Reaching the goal within the horizon is a
success, worth 1; nothing else is worth anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

START = 0


@dataclass(frozen=True, slots=True)
class MDP:
    """One MDP. An illegal action's outcomes are the state itself."""

    next_SAO: Ints  # (S, A, O) state after each outcome
    prob_SAO: Floats  # (S, A, O) sums to 1 over outcomes
    legal_SA: Bools  # (S, A)
    terminal_S: Bools  # (S,) the goal, and failures that end a rollout


@dataclass(frozen=True, slots=True)
class MDPs:
    """M MDPs of one family, padded to common sizes; the goal is the last state of each."""

    next_MSAO: Ints
    prob_MSAO: Floats
    legal_MSA: Bools
    terminal_MS: Bools
    horizon: int

    @property
    def goal(self) -> int:
        """The goal's state, the last."""
        return self.next_MSAO.shape[1] - 1

    def __len__(self) -> int:
        return len(self.next_MSAO)


def stack(mdps: list[MDP], horizon: int) -> MDPs:
    """Pad to the largest number of states, actions and outcomes; goals move to the last state."""
    size_S, size_A, size_O = (max(mdp.next_SAO.shape[axis] for mdp in mdps) for axis in range(3))
    padded = [_pad(mdp, size_S, size_A, size_O) for mdp in mdps]
    return MDPs(
        next_MSAO=np.stack([mdp.next_SAO for mdp in padded]),
        prob_MSAO=np.stack([mdp.prob_SAO for mdp in padded]),
        legal_MSA=np.stack([mdp.legal_SA for mdp in padded]),
        terminal_MS=np.stack([mdp.terminal_S for mdp in padded]),
        horizon=horizon,
    )


def _pad(mdp: MDP, size_S: int, size_A: int, size_O: int) -> MDP:
    states, actions, outcomes = mdp.next_SAO.shape
    place = np.append(np.arange(states - 1), size_S - 1)
    following = np.broadcast_to(np.arange(size_S)[:, None, None], (size_S, size_A, size_O)).copy()
    following[place[:, None, None], np.arange(actions)[:, None], np.arange(outcomes)] = place[mdp.next_SAO]
    prob = np.zeros((size_S, size_A, size_O))
    prob[..., 0] = 1.0
    prob[place[:, None], np.arange(actions)] = 0.0
    prob[place[:, None, None], np.arange(actions)[:, None], np.arange(outcomes)] = mdp.prob_SAO
    legal = np.zeros((size_S, size_A), dtype=np.bool_)
    legal[:, 0] = True
    legal[place[:, None], np.arange(actions)] = mdp.legal_SA
    terminal = np.ones(size_S, dtype=np.bool_)
    terminal[place] = mdp.terminal_S
    return MDP(following, prob, legal, terminal)


def random_mdp(kind: str, rng: np.random.Generator, **parameters: Any) -> MDP:
    """Draw MDPs of a kind until the goal can be reached from the start, but not at once."""
    least = parameters.pop("least_distance", 3)
    while True:
        mdp = _draw_regions(rng, **parameters) if kind == "regions" else _draw_layers(rng, **parameters)
        if least <= _distance(mdp) < len(mdp.legal_SA):
            return mdp


def _distance(mdp: MDP) -> int:
    """Fewest actions from the start to the goal, were every outcome one's own choice."""
    frontier, seen, steps = {START}, {START}, 0
    goal = len(mdp.legal_SA) - 1
    while goal not in seen and frontier:
        reached = {int(x) for state in frontier for x in mdp.next_SAO[state][mdp.prob_SAO[state] > 0]}
        frontier, steps = reached - seen, steps + 1
        seen |= reached
    return steps if goal in seen else len(mdp.legal_SA)


def _draw_regions(
    rng: np.random.Generator,
    *,
    regions: int,
    states: int,
    actions: int,
    traps: int,
    loop_share: float,
    trap_share: float,
    back_share: float,
    slip: float,
) -> MDP:
    """Regions in a row; one state of each has the door to the next, one of the last the goal.

    ``states`` counts the ordinary states of all regions and the traps. An action stays in place
    (``loop_share``), falls into an absorbing trap (``trap_share``), goes back a region
    (``back_share``) or to a random state of its own region. With probability ``slip`` an action has
    the effect of a random one.
    """
    region_S = _place_in_regions(rng, regions, states - traps)
    target_SA = np.tile(np.arange(states + 1)[:, None], (1, actions))
    for state, action in np.ndindex(len(region_S), actions):
        draw = rng.random() - loop_share
        if draw < 0:
            continue
        if traps and draw < trap_share:
            target_SA[state, action] = rng.integers(len(region_S), states)
        else:
            steps_back = 1 if draw < trap_share + back_share else 0
            home = max(region_S[state] - steps_back, 0)
            target_SA[state, action] = rng.choice(np.flatnonzero(region_S == home))
    for region in range(regions):
        door = rng.choice(np.flatnonzero(region_S == region))
        beyond = np.flatnonzero(region_S == region + 1) if region + 1 < regions else [states]
        target_SA[door, rng.integers(actions)] = rng.choice(beyond)
    return _with_slip(target_SA, slip)


def _place_in_regions(rng: np.random.Generator, regions: int, count: int) -> Ints:
    """A region for each state, in order, each region with at least one; the start is in the first."""
    extra = rng.integers(regions, size=count - regions)
    return np.sort(np.concatenate([np.arange(regions), extra]))


def _with_slip(target_SA: Ints, slip: float) -> MDP:
    states, actions = target_SA.shape
    terminal = np.arange(states) == states - 1
    legal = np.ones((states, actions), dtype=np.bool_)
    if slip == 0:
        return MDP(target_SA[:, :, None], np.ones((states, actions, 1)), legal, terminal)
    following = np.broadcast_to(target_SA[:, None, :], (states, actions, actions)).copy()
    prob = np.broadcast_to((1 - slip) * np.eye(actions) + slip / actions, following.shape).copy()
    return MDP(following, prob, legal, terminal)


def _draw_layers(
    rng: np.random.Generator, *, layers: int, width: int, actions: int, hazard: float, loop_share: float
) -> MDP:
    """Layers that every path crosses in the same number of actions, so that distances tie.

    What tells the branches apart is how dangerous the next state is: an action ends in the trap with
    a probability that belongs to the state it leads to, uniform between 0 and ``hazard``. Some
    actions stay in place (``loop_share``).
    """
    trap, goal = layers * width + 1, layers * width + 2
    target_SA = np.tile(np.arange(goal + 1)[:, None], (1, actions))
    danger_S = np.zeros(goal + 1)
    danger_S[1:trap] = rng.uniform(0, hazard, size=trap - 1)
    for state in range(trap):
        layer = 0 if state == START else 1 + (state - 1) // width
        following = (
            np.arange(layer * width + 1, (layer + 1) * width + 1) if layer < layers else np.array([goal])
        )
        moves = rng.random(actions) >= loop_share
        moves[rng.integers(actions)] = True
        target_SA[state, moves] = rng.choice(following, size=moves.sum())
    moved = target_SA != np.arange(goal + 1)[:, None]
    danger_SA = np.where(moved, danger_S[target_SA], 0.0)
    following_SAO = np.stack([target_SA, np.where(moved, trap, target_SA)], axis=2)
    prob_SAO = np.stack([1 - danger_SA, danger_SA], axis=2)
    legal = np.ones(target_SA.shape, dtype=np.bool_)
    return MDP(following_SAO, prob_SAO, legal, np.arange(goal + 1) == goal)
