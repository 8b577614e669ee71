from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_plugin.report.text import action_text, clean, observation_text, one_line
from milegpo_plugin.types import Action, ToolCall


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert clean("a" * 1_000_010, 10) == "a" * 10 + " … (1,000,000 more characters)"


def test_a_text_that_fits_is_kept_with_its_lines() -> None:
    assert clean("one\n\ttwo", 10) == "one\n\ttwo"


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800"])
def test_a_character_that_could_hide_or_reorder_text_becomes_its_code_point(character: str) -> None:
    assert clean(f"a{character}b", 10) == f"a⟨U+{ord(character):04X}⟩b"


def test_right_to_left_text_and_emoji_are_kept() -> None:
    text = "שלום مرحبا 👩‍👩‍👧 é"
    assert clean(text, 100) == text


@given(st.text(alphabet=st.characters(), max_size=200), st.integers(1, 100))
def test_cleaned_text_can_be_written_as_utf8_and_has_no_control_characters(text: str, limit: int) -> None:
    shown = clean(text, limit)
    shown.encode()
    assert all(
        character.isprintable() or character in "\n\t" or character.isspace() or character > "\x9f"
        for character in shown
    )


@given(st.text(max_size=300), st.integers(1, 60))
def test_one_line_is_one_line_of_bounded_length(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_an_action_is_its_tool_calls_or_else_its_text() -> None:
    calls = [ToolCall(name="go", arguments={"to": "north", "times": 2}), ToolCall(name="look")]
    assert action_text(Action(text="thinking", tool_calls=calls)) == 'go(to="north", times=2), look()'
    assert action_text(Action(text="answer")) == "answer"
    assert action_text(Action()) == "(no output)"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": "hello"}, "user: hello"),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
            "user: a\n[image_url]",
        ),
        ({"role": "tool", "content": {"door": "open"}}, 'tool: {"door":"open"}'),
        ({"role": "assistant", "content": None}, "assistant: "),
        ({"content": "no role"}, "?: no role"),
    ],
    ids=["text", "parts", "object", "nothing", "no role"],
)
def test_an_observation_shows_each_message_behind_its_role(message: dict[str, object], expected: str) -> None:
    assert observation_text([message]) == expected


def test_assistant_messages_of_an_observation_show_their_tool_calls() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    assert observation_text([{"role": "assistant", "content": None, "tool_calls": [call]}]) == (
        'assistant: {"name":"go","arguments":"{}"}'
    )
