"""What every captured trace of the scripted game gives, as a table of docs/dialects.md.

Run it as ``python -m benchmarks.dialect_table``; it prints the table, and with ``--write`` puts it into
the page. The captures and ``TRUTH.json``, which says what happened, are in tests/data/traces.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from milegpo_plugin.adapters import SpanTree, dialect_of
from milegpo_plugin.files import read_input
from milegpo_plugin.spans import read_spans
from milegpo_plugin.types import Skipped, Step, ToolCall, Trajectory

ROOT: Final = Path(__file__).parents[1]
TRACES: Final = ROOT / "tests" / "data" / "traces"
PAGE: Final = ROOT / "docs" / "dialects.md"
COLUMNS: Final = ("capture", "read by", "steps", "tool calls", "results", "token ids", "agents", "flags")
OTHER_GAMES: Final = ("openinference_openai__err", "openinference_smolagents__code")
"""Captures of other stories: two failing requests, and actions that are code."""
EVERYWHERE: Final = frozenset({"no_reward", "task_from_message"})
"""Flags of every capture without a platform: the scripted game has no reward and no task id."""
_MARKS: Final = ("<!-- captures -->", "<!-- /captures -->")


def capture_names() -> list[str]:
    """The captures of the game, without the long ones and the copies in another form."""
    names = (file.name.removesuffix(".otlp.jsonl") for file in TRACES.glob("*.otlp.jsonl"))
    return sorted(
        n for n in names if not n.endswith(".logs") and not n.startswith("long_") and n not in OTHER_GAMES
    )


def make_table() -> str:
    """The table in Markdown, one row a capture."""
    truth = json.loads((TRACES / "TRUTH.json").read_text(encoding="utf-8"))
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *(_row(name, truth) for name in capture_names())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page_with(table: str, page: str) -> str:
    """The page with the table between its marks."""
    begin, end = _MARKS
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{table}\n{end}", page, flags=re.DOTALL)


def _row(name: str, truth: dict[str, Any]) -> tuple[str, ...]:
    path, logs = TRACES / f"{name}.otlp.jsonl", TRACES / f"{name}.logs.otlp.jsonl"
    paths = [logs] if logs.exists() else []
    found = read_input([path], logs=paths).trajectories
    games = [_game(truth["steps"], rollout.steps) for rollout in found]
    asked = sum(len(step["tool_calls"]) for step in truth["steps"])
    steps = [step for rollout in found for step in rollout.steps]
    return (
        f"`{name}`",
        ", ".join(f"`{reader}`" for reader in _readers(path, paths)),
        _share(map(len, games), len(truth["steps"])) + _others(games, found),
        _share((_equal_calls(truth["steps"], game) for game in games), asked),
        _share((_results(game) for game in games), asked),
        _count(sum(bool(step.prompt_token_ids and step.response_token_ids) for step in steps), len(steps)),
        ", ".join(sorted({step.agent for step in steps if step.agent})) or "–",
        ", ".join(f"`{flag}`" for flag in sorted(_flags(found) - EVERYWHERE)) or "–",
    )


def _readers(path: Path, logs: Sequence[Path]) -> list[str]:
    """The dialects that read a model call of the capture."""
    spans = read_spans([path], logs, on_problem=_fail)
    tree = SpanTree(spans)
    owners = ((dialect_of(span), span) for span in spans)
    return sorted({owner.name for owner, span in owners if owner and owner.read_call(span, tree)})


def _game(truth: Sequence[dict[str, Any]], steps: Iterable[Step]) -> list[Step]:
    """The steps of the story in order; steps of other agents lie between them."""
    left = iter(steps)
    game: list[Step] = []
    for wanted in truth:
        found = next((step for step in left if _is_the_step(wanted, step)), None)
        if found is None:
            break
        game.append(found)
    return game


def _is_the_step(wanted: dict[str, Any], step: Step) -> bool:
    """Text and tool calls agree; some frameworks make the last text a call of a tool of their own."""
    if wanted["final"] and step.action.text is None and step.action.tool_calls:
        return wanted["assistant_text"] in step.action.tool_calls[0].arguments.values()
    calls = [(call["name"], call["arguments"]) for call in wanted["tool_calls"]]
    return step.action.text == wanted["assistant_text"] and _named(step.action.tool_calls) == calls


def _named(calls: Iterable[ToolCall]) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in calls]


def _equal_calls(truth: Sequence[dict[str, Any]], game: Sequence[Step]) -> int:
    return sum(len(wanted["tool_calls"]) for wanted, _ in zip(truth, game, strict=False))


def _results(game: Sequence[Step]) -> int:
    """Tool results that are in the observation of the next step and name their call."""
    return sum(
        message.get("tool_call_id") == call.id
        for step, after in itertools.pairwise(game)
        for call, message in zip(step.action.tool_calls, after.observation, strict=False)
        if message["role"] == "tool"
    )


def _others(games: Sequence[Sequence[Step]], found: Sequence[Trajectory]) -> str:
    others = sum(len(rollout.steps) for rollout in found) - sum(map(len, games))
    return f" + {others} of others" if others else ""


def _share(counts: Iterable[int], whole: int) -> str:
    return ", ".join(f"{count} of {whole}" for count in counts)


def _count(count: int, whole: int) -> str:
    return f"{count} of {whole}" if count else "–"


def _flags(found: Iterable[Trajectory]) -> set[str]:
    return {flag for t in found for flag in (*t.flags, *(flag for step in t.steps for flag in step.flags))}


def _fail(problem: Skipped) -> None:
    raise SystemExit(f"{problem.id}: {problem.reason}")


def _lines(page: str, begin: str) -> Iterator[str]:
    """The lines of the first table below a heading."""
    rows = iter(f"\n{page}".partition(f"\n{begin}\n")[2].splitlines())
    for row in rows:
        if row.startswith("|"):
            yield row
        elif row.startswith("#"):
            return


def table_rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the tables below ``heading`` (with its ``#``), without the heads."""
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in _lines(page, heading)]
    return rows[2:]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    table = make_table()
    if parser.parse_args().write:
        PAGE.write_text(page_with(table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table)  # what this program is for


if __name__ == "__main__":
    main()
