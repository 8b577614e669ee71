from __future__ import annotations

import pytest
from agentlightning.semconv import AGL_ANNOTATION
from agentlightning.utils.otel import extract_links_from_attributes, query_linked_spans
from opentelemetry.sdk.trace.export import SpanExportResult

from milegpo_plugin.agl.verl.write_back import otlp_exporter


class Backend:
    """An OTel backend that keeps what it gets."""

    def __init__(self, result: SpanExportResult = SpanExportResult.SUCCESS) -> None:
        self.spans: list = []
        self.result = result

    def export(self, spans):
        self.spans += spans
        return self.result


@pytest.fixture
def written(make_stage, walks):
    stage = make_stage(walks, write_back=True)
    stage.daemon._exporter = Backend()
    stage.run_batch(["a"])
    batch, _ = stage.batch()
    return stage, batch


def test_every_model_call_gets_one_annotation_that_is_linked_to_it(written):
    stage, _ = written
    for played in stage.daemon._in_queue_order():
        spans = stage.ask(stage.store.query_spans(played.trajectory.rollout_id))
        credit = [span for span in spans if "milegpo.credit.advantage" in span.attributes]
        assert len(credit) == len(played.trajectory.steps)
        assert {span.name for span in credit} == {AGL_ANNOTATION}
        for span, step in zip(credit, played.trajectory.steps, strict=True):
            (call,) = query_linked_spans(spans, extract_links_from_attributes(span.attributes))
            assert call.span_id == step.span_id == span.parent_id == span.links[0].context.span_id
            assert call.trace_id == span.trace_id


def test_annotations_hold_the_advantage_that_was_trained_on(written):
    stage, batch = written
    rollout_id = stage.daemon._in_queue_order()[0].trajectory.rollout_id
    spans = stage.ask(stage.store.query_spans(rollout_id))
    stored = [a for span in spans if (a := span.attributes.get("milegpo.credit.advantage")) is not None]
    rows = batch.non_tensor_batch["rollout_id_list"] == rollout_id
    trained = batch.batch["token_level_scores"].sum(-1)[rows]
    assert trained.tolist() == pytest.approx(stored)


def test_writing_back_changes_neither_the_status_nor_what_is_read_again(written):
    stage, _ = written
    rollout_id = stage.daemon._in_queue_order()[0].trajectory.rollout_id
    before = stage.daemon._played[rollout_id].trajectory
    rollout = stage.ask(stage.store.get_rollout_by_id(rollout_id))
    assert rollout.status == "succeeded"
    stage.ask(stage.daemon._validate_data_v1(rollout))
    assert stage.daemon._played[rollout_id].trajectory == before


def test_an_otel_backend_gets_the_same_spans(written):
    stage, _ = written
    steps = sum(len(played.trajectory.steps) for played in stage.daemon._in_queue_order())
    assert len(stage.daemon._exporter.spans) == steps


def test_a_backend_that_refuses_is_a_warning_not_a_crash(make_stage, walks, caplog):
    stage = make_stage(walks, write_back=True)
    stage.daemon._exporter = Backend(SpanExportResult.FAILURE)
    stage.run_batch(["a"])
    stage.batch()
    assert "the OTLP backend refused 14 credit spans" in caplog.text


def test_nothing_is_written_unless_asked(make_stage, walks):
    stage = make_stage(walks)
    stage.run_batch(["a"])
    stage.batch()
    for played in stage.daemon._in_queue_order():
        spans = stage.ask(stage.store.query_spans(played.trajectory.rollout_id))
        assert not any("milegpo.credit.advantage" in span.attributes for span in spans)


def test_an_exporter_exists_only_where_the_environment_names_a_backend():
    assert otlp_exporter({}) is None
    assert otlp_exporter({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is not None
