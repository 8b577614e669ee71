from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "agentlightning", "transformers", "litellm", "ray")


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()) if done.stdout.strip() else set()


def test_importing_the_package_and_assigning_credit_loads_nothing_heavy():
    assert loaded_by("import milegpo_plugin as m; m.assign_credit; m.CreditConfig; m.Trajectory") == set()


@pytest.mark.parametrize(
    "command", [[], ["credit"], ["diagnose"], ["trajectories"], ["report"], ["train"], ["quickstart"]]
)
def test_help_loads_nothing_heavy_and_shows_an_example(command):
    code = (
        "from typer.testing import CliRunner\nfrom milegpo_plugin.cli import app\n"
        f"result = CliRunner().invoke(app, {[*command, '--help']!r})\n"
        f"assert result.exit_code == 0 and ({not command!r} or 'Example: milegpo' in result.output), result.output"
    )
    assert loaded_by(code) == set()
