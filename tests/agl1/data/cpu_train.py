"""The example's run with the hook of ``cpu_stage``: ``cpu_train.py AGENT REWARD TASKS [key=value …]``."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

from agentlightning.verl.entrypoint import run_ppo

from milegpo_plugin.agl.v1 import configure, use_agent

EXAMPLE = Path(__file__).parents[3] / "examples" / "agl1" / "train.py"

agent, reward, tasks, *changes = sys.argv[1:]
build_config = runpy.run_path(str(EXAMPLE))["build_config"]
config = use_agent(build_config(changes), agent, reward=reward)
rows = json.loads(tasks)
run_ppo(configure(config, own_hook=True), train_dataset=rows, val_dataset=rows)
