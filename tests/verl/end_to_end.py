"""Train the room walker for two steps with everything but the GPU: run by ``test_end_to_end.py``.

Agent Lightning's trainer, store server, runner processes, tracer, LLM proxy and Ray driver are real,
and so are verl's trainer, advantages and actor. The model server answers by a seeded coin, the
worker group is ``stand_ins.Workers``.

Usage: ``python end_to_end.py MODEL_DIR DUMP_DIR``; metrics go to ``$VERL_FILE_LOGGER_PATH``.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import agentlightning
import ray
import uvicorn
from fastapi import FastAPI
from stand_ins import Engine, Workers, start_process_group

from milegpo_plugin import MileGPO
from milegpo_plugin.agl.agent import UserAgent
from milegpo_plugin.agl.verl.trainer import MileGPOTrainer

AGENT = Path(__file__).with_name("room_walker.py")


def serve_model() -> str:
    """A server that speaks as vLLM does; returns its address."""
    app, coin = FastAPI(), random.Random(0)

    @app.post("/v1/chat/completions")
    def complete(body: dict[str, Any]) -> dict[str, Any]:
        assert body["return_token_ids"] is True
        prompt = "".join(message["content"] for message in body["messages"])
        action = coin.choice(["left", "right"])
        message = {"role": "assistant", "content": action}
        ids = [2 + byte for byte in action.encode()]
        return {
            "id": f"chatcmpl-{coin.getrandbits(64):x}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "prompt_token_ids": [2 + byte for byte in prompt.encode()],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message, "token_ids": ids}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": 0},
        }

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    return f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"


class ScriptedTrainer(MileGPOTrainer):
    """The trainer with the stand-ins as workers; notes how far the parameters moved."""

    def init_workers(self) -> None:
        start_process_group(tempfile.mktemp())
        self.actor_rollout_wg = Workers(self.config)
        self.async_rollout_manager = Engine([self.config.scripted_address])
        self.async_rollout_mode = True

    def _train_step(self, batch_dict: dict[str, Any]) -> dict[str, Any]:
        before = self.actor_rollout_wg.weights()
        metrics = super()._train_step(batch_dict)
        metrics["test/moved"] = float((self.actor_rollout_wg.weights() - before).norm())
        return metrics


class Algorithm(MileGPO):
    """Starts Ray without its dashboard, whose eight processes a small machine feels."""

    def run(self, train_dataset: Any = None, val_dataset: Any = None) -> None:
        ray.init(num_cpus=2, include_dashboard=False)
        super().run(train_dataset, val_dataset)


def config(model_dir: str, address: str) -> dict[str, Any]:
    return {
        "scripted_address": address,
        "data": {"train_batch_size": 2, "max_prompt_length": 64, "max_response_length": 16},
        "actor_rollout_ref": {
            "model": {"path": model_dir},
            "rollout": {"name": "scripted", "n": 4},
            "actor": {
                "ppo_mini_batch_size": 4,
                "ppo_micro_batch_size_per_gpu": 4,
                "use_torch_compile": False,
                "optim": {"lr": 1e-2},
                "fsdp_config": {"dtype": "float32"},
            },
        },
        "trainer": {
            "n_gpus_per_node": 1,
            "device": "cpu",
            "logger": ["console", "file"],
            "balance_batch": False,
            "total_epochs": 1,
            "val_before_train": False,
            "test_freq": 2,
            "save_freq": -1,
            "resume_mode": "disable",
        },
    }


def main(model_dir: str, dump_dir: str) -> None:
    settings = config(model_dir, serve_model())
    algorithm = Algorithm(settings, credit="webshop", dump_dir=dump_dir, write_back=True)
    algorithm.trainer_cls = ScriptedTrainer
    trainer = agentlightning.Trainer(algorithm=algorithm, n_runners=2)
    tasks = [{"start": start} for start in (0, 1, 0, 1)]
    trainer.fit(UserAgent(f"{AGENT}:play"), train_dataset=tasks, val_dataset=tasks[:2])


if __name__ == "__main__":
    main(*sys.argv[1:])
