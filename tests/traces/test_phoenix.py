"""Phoenix: spans of its REST API, of data frames and of whole traces, and annotations as rewards."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from milegpo_plugin.spans import read_document, read_spans
from milegpo_plugin.trajectories import build_trajectories

CAPTURES = (
    "openinference_openai",
    "openinference_openai__stream",
    "openinference_langchain",
    "openinference_openai_agents",
    "openinference_smolagents",
    "openinference_litellm",
)


def nested(attributes):
    """``a.0.b: value`` as the objects and lists that Phoenix makes of it."""
    tree: dict = {}
    for key, value in attributes.items():
        node = tree
        *path, last = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return listed(tree)


def listed(node):
    if not isinstance(node, dict):
        return node
    values = {key: listed(value) for key, value in node.items()}
    return list(values.values()) if values and all(key.isdecimal() for key in values) else values


def time(nanoseconds):
    """Phoenix keeps microseconds."""
    return datetime.fromtimestamp(nanoseconds // 1000 / 10**6, UTC).isoformat()


def as_object(key, value):
    """Metadata and tool parameters are objects in Phoenix."""
    is_text = key in ("metadata", "tool.parameters") and isinstance(value, str)
    return json.loads(value) if is_text and value.startswith("{") else value


def api_span(span):
    return {
        "id": span.span_id,
        "name": span.name,
        "context": {"trace_id": span.trace_id, "span_id": span.span_id},
        "span_kind": span.attributes["openinference.span.kind"],
        "parent_id": span.parent_id,
        "start_time": time(span.start_ns),
        "end_time": time(span.end_ns),
        "status_code": span.status,
        "status_message": span.status_message,
        "attributes": nested({key: as_object(key, value) for key, value in span.attributes.items()}),
        "events": [],
    }


def frame_row(span):
    """A row of ``get_spans_dataframe`` as JSON: a column for each attribute, times in milliseconds."""
    plain = api_span(span)
    columns = {f"context.{key}": value for key, value in plain.pop("context").items()}
    columns |= {f"attributes.{key}": value for key, value in plain.pop("attributes").items()}
    times = {"start_time": span.start_ns // 10**6, "end_time": span.end_ns // 10**6}
    return {**plain, **columns, **times}


def annotation(target, score, name="correctness", **fields):
    return {
        "id": f"annotation-{score}",
        "name": name,
        "annotator_kind": "HUMAN",
        "result": {"label": None, "score": score, "explanation": None},
        "created_at": "2026-11-30T23:00:00+00:00",
        **target,
        **fields,
    }


FORMS = {
    "page of the API": lambda spans: [{"data": [api_span(span) for span in spans], "next_cursor": None}],
    "rows of a data frame": lambda spans: [frame_row(span) for span in spans],
    "trace": lambda spans: [{"trace_id": "any", "spans": [api_span(span) for span in spans]}],
}


def rebuild(documents):
    return build_trajectories([span for document in documents for span in read_document(document)])


def story(trajectory):
    return [
        (step.agent, step.action.model_dump(), step.observation, step.response_token_ids, step.logprobs)
        for step in trajectory.steps
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CAPTURES)
def test_an_export_gives_what_the_spans_gave(name, form, load_capture):
    spans = [span for span in load_capture(name) if "openinference.span.kind" in span.attributes]
    (expected,) = build_trajectories(spans).trajectories
    (found,) = rebuild(FORMS[form](spans)).trajectories
    assert story(found) == story(expected)
    assert found.task_id == expected.task_id


def test_annotations_of_spans_traces_and_sessions_are_rewards(load_capture):
    spans = load_capture("openinference_langchain")
    page = FORMS["page of the API"](spans)
    first = min((span for span in spans if span.name == "ChatOpenAI"), key=lambda span: span.start_ns)
    for target in ({"span_id": first.span_id}, {"trace_id": first.trace_id}, {"session_id": "thread-1"}):
        (trajectory,) = rebuild([*page, annotation(target, 0.5)]).trajectories
        assert trajectory.reward == 0.5, target


def test_an_annotation_within_the_export_of_a_span_counts_for_that_step(load_capture):
    spans = load_capture("openinference_openai")
    documents = [api_span(span) for span in sorted(spans, key=lambda span: span.start_ns)]
    for number, document in enumerate(documents[:2]):
        document["annotations"] = [annotation({}, number + 0.25)]
    outcome = annotation({"span_id": documents[-1]["context"]["span_id"]}, 1.0)
    (trajectory,) = rebuild([*documents, outcome]).trajectories
    assert [step.reward for step in trajectory.steps[:3]] == [0.25, 1.25, None]
    assert trajectory.reward == 1.0


def test_a_label_without_a_score_is_no_reward(load_capture):
    spans = load_capture("openinference_openai")
    labelled = annotation({"trace_id": spans[0].trace_id}, None)
    (trajectory,) = rebuild([*FORMS["trace"](spans), labelled]).trajectories
    assert trajectory.reward is None


def test_a_span_whose_parent_was_not_exported_is_a_root_and_flagged(load_capture):
    documents = [api_span(span) for span in load_capture("openinference_openai")]
    for document in documents:
        document["parent_id"] = "00000000000000aa"
    (trajectory,) = rebuild(documents).trajectories
    assert "orphan_parent" in trajectory.flags
    assert len(trajectory.steps) == 6


def test_a_call_without_input_and_output_is_flagged_and_stays_in_its_run(load_capture):
    documents = [api_span(span) for span in load_capture("openinference_langchain")]
    calls = [document for document in documents if document["name"] == "ChatOpenAI"]
    for key in ("input", "output", "llm"):
        calls[2]["attributes"][key] = None
    (trajectory,) = rebuild(documents).trajectories
    assert len(trajectory.steps) == 6
    assert "no_content" in trajectory.steps[2].flags


def test_a_file_of_an_export_is_told_from_other_files(tmp_path, load_capture):
    file = tmp_path / "spans.json"
    file.write_text(json.dumps(FORMS["page of the API"](load_capture("openinference_openai"))[0]))
    (trajectory,) = build_trajectories(read_spans([file], on_problem=pytest.fail)).trajectories
    assert len(trajectory.steps) == 6
