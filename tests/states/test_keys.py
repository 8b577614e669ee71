"""What makes two steps the same state, and what never does."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_plugin.config import StateConfig
from milegpo_plugin.states import EMPTY_STATE, HISTORY_SEPARATOR, state_keys
from milegpo_plugin.types import Step, Trajectory


def tool(text, call_id="call_1"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def user(text):
    return {"role": "user", "content": text}


def rollout(*observations, task="t", name="r", **end):
    steps = [Step(observation=list(messages)) for messages in observations]
    return Trajectory(task_id=task, rollout_id=name, steps=steps, **end)


def keys_of(*observations, **config):
    return state_keys([rollout(*observations)], StateConfig(**config)).steps[0]


def test_white_space_and_line_ends_do_not_make_a_new_state():
    assert (
        keys_of([tool("  a room\r\nwith\ta  key \n")], [tool("a room with a key")])
        == ["a room with a key"] * 2
    )


def test_lines_keep_a_text_map_apart():
    left, right = " @  \n....", "  @ \n...."
    assert len(set(keys_of([tool(left)], [tool(right)], white_space="lines"))) == 2
    assert keys_of([tool("\r\n..@..  \r\n.....\r\n")], white_space="lines") == ["..@..\n....."]


def test_composed_and_decomposed_letters_are_one_text():
    assert len(set(keys_of([tool("caf\u00e9")], [tool("cafe\u0301")]))) == 1


def test_roles_call_ids_and_names_never_enter_a_key():
    first = {"role": "tool", "tool_call_id": "call_a1", "name": "look", "content": "hall", "id": "msg_1"}
    second = {"role": "user", "content": "hall", "timestamp": 17}
    assert keys_of([first], [second]) == ["hall", "hall"]


def test_a_call_id_that_the_text_repeats_is_masked():
    observations = [[tool(f"result of {call}: hall", call)] for call in ("call_8f3a", "call_77c1")]
    assert len(set(keys_of(*observations))) == 1


def test_a_short_call_id_does_not_eat_the_text():
    assert keys_of([tool("room 1", "1")], [tool("room 2", "2")]) == ["room 1", "room 2"]


@pytest.mark.parametrize(
    "minted",
    [
        "call_abcDEF0123456789abcd",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-6f1d2c9e4b7a4c1d9e8f7a6b5c4d3e2f",
        "resp_67ccd2bed1ec8190b14f964abc054267",
        "msg_67ccd2bf17f0819081ff3bb2cf6508e6",
    ],
)
def test_ids_that_servers_mint_never_enter_a_key(minted):
    assert minted not in keys_of([tool(f"stored under {minted}.")])[0]


def test_words_that_only_begin_like_an_id_stay():
    text = "call_the_emergency_service_now run-of-the-mill"
    assert keys_of([tool(text)]) == [text]


def test_parallel_results_and_a_user_message_are_one_state_in_their_order():
    assert keys_of([tool("study"), tool("nothing", "call_2"), user("go on")]) == ["study nothing go on"]


def test_assistant_and_system_messages_are_not_part_of_the_state():
    messages = [{"role": "system", "content": "be careful"}, {"role": "assistant", "content": "I think"}]
    assert keys_of([*messages, user("the hall")]) == ["the hall"]


def test_tool_results_only_leaves_user_messages_out_where_there_are_results():
    keys = keys_of([user("the task")], [tool("hall"), user("12:30, hurry")], tool_results_only=True)
    assert keys == ["the task", "hall"]


@pytest.mark.parametrize(
    "observation", [[], [tool("")], [tool(None)], [tool(" \n ")], [{"role": "assistant", "content": "x"}]]
)
def test_an_empty_observation_has_one_defined_key(observation):
    assert keys_of(observation) == [EMPTY_STATE]


def test_content_parts_count_by_their_text_and_their_pictures():
    def parts(url):
        return [{"type": "text", "text": "a map"}, {"type": "image_url", "image_url": {"url": url}}]

    one, same, other = keys_of([tool(parts("data:A"))], [tool(parts("data:A"))], [tool(parts("data:B"))])
    assert one == same != other
    assert one.startswith("a map <image_url ")


def test_a_structured_result_is_read_whatever_its_key_order():
    assert len(set(keys_of([tool({"a": 1, "b": [2]})], [tool({"b": [2], "a": 1})]))) == 1


def test_a_given_state_is_kept_verbatim():
    step = Step(state="  Room 12\n", observation=[tool("something else")])
    keys = state_keys(
        [Trajectory(task_id="t", rollout_id="r", steps=[step], final_state=" End ")],
        StateConfig(masks=("numbers",)),
    )
    assert keys.steps == [["  Room 12\n"]]
    assert keys.final == [" End "]


def test_the_end_has_the_key_of_a_step_that_shows_the_same_text():
    trajectory = rollout([tool("hall 7")], [tool("study", "call_2")], final_observation=" hall\n9")
    keys = state_keys([trajectory], StateConfig(masks=("numbers",)))
    assert keys.final[0] == keys.steps[0][0]


def test_the_end_meets_a_given_state_with_the_same_text():
    given_step = Step(state="a room\n(dark)")
    one = Trajectory(task_id="t", rollout_id="1", steps=[given_step], final_observation="a room\n(dark)")
    two = Trajectory(task_id="t", rollout_id="2", steps=[Step(observation=[tool("a room (dark) ")])])
    keys = state_keys([one, two], StateConfig())
    assert keys.final[0] == keys.steps[1][0] == "a room\n(dark)"


def test_an_end_that_was_not_recorded_stays_unknown():
    assert state_keys([rollout([user("x")])], StateConfig()).final == [None]


def test_history_joins_the_last_states_and_the_end():
    trajectory = rollout([tool("a")], [tool("b")], [tool("c")], final_observation="d")
    keys = state_keys([trajectory], StateConfig(history=2))
    assert keys.steps == [["a", f"a{HISTORY_SEPARATOR}b", f"b{HISTORY_SEPARATOR}c"]]
    assert keys.final == [f"c{HISTORY_SEPARATOR}d"]


def test_a_rollout_without_steps_has_no_keys():
    assert state_keys([rollout()], StateConfig(history=3)).steps == [[]]
    assert state_keys([], StateConfig()).steps == []


texts = st.text(alphabet=st.sampled_from("ab 1\n\u00e9\ud83d"), max_size=12)
rollouts = st.lists(
    st.builds(
        lambda task, contents, final: rollout(
            *[[tool(c)] for c in contents], task=task, final_observation=final
        ),
        st.sampled_from(["t1", "t2"]),
        st.lists(texts, max_size=5),
        st.none() | texts,
    ),
    max_size=6,
)


@settings(deadline=None)
@given(rollouts, st.sampled_from([None, 0.6]), st.integers(1, 3), st.randoms())
def test_keys_do_not_depend_on_the_order_of_the_rollouts(batch, similarity, history, rng):
    config = StateConfig(similarity=similarity, history=history)
    order = list(range(len(batch)))
    rng.shuffle(order)
    plain, shuffled = state_keys(batch, config), state_keys([batch[i] for i in order], config)
    assert shuffled.steps == [plain.steps[i] for i in order]
    assert shuffled.final == [plain.final[i] for i in order]


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=6))
def test_a_key_is_its_own_key(contents):
    keys = keys_of(*[[tool(text)] for text in contents])
    assert keys_of(*[[tool(key)] for key in keys]) == keys


def test_a_large_batch_of_repeated_observations_is_fast(benchmark_seconds):
    rng = random.Random(0)
    rooms = [" ".join(rng.choices(["north", "door", "key", "study"], k=50)) for _ in range(150)]
    batch = [rollout(*[[tool(rng.choice(rooms))] for _ in range(50)], name=str(k)) for k in range(128)]
    assert benchmark_seconds(lambda: state_keys(batch, StateConfig())) < 0.2
