// The scripted game of TRUTH.json as a JavaScript client that follows the GenAI conventions traces it.
// Usage: node play.mjs EXPORTER COMPRESSION TRUTH.json, where EXPORTER is "http" (JSON) or "proto" and
// COMPRESSION is "none" or "gzip". The endpoint comes from OTEL_EXPORTER_OTLP_ENDPOINT.
import { readFileSync } from "node:fs";
import { context, trace } from "@opentelemetry/api";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const [exporter, compression, truthFile] = process.argv.slice(2);
const { OTLPTraceExporter } = await import(`@opentelemetry/exporter-trace-otlp-${exporter}`);
const truth = JSON.parse(readFileSync(truthFile, "utf-8"));
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ compression }), { maxExportBatchSize: 3 });
const provider = new NodeTracerProvider({ spanProcessors: [processor] });
const tracer = provider.getTracer("game");

function chat(parent, history, parts) {
  const span = tracer.startSpan("chat game", {}, parent);
  span.setAttributes({
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": JSON.stringify(history),
    "gen_ai.output.messages": JSON.stringify([{ role: "assistant", parts }]),
  });
  span.end();
}

const session = `js-${exporter}-${compression}`;
const history = [
  { role: "system", parts: [{ type: "text", content: truth.system }] },
  { role: "user", parts: [{ type: "text", content: truth.task }] },
];
const run = tracer.startSpan("invoke_agent player", {
  attributes: {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.name": "player",
    "gen_ai.conversation.id": session,
  },
});
const inRun = trace.setSpan(context.active(), run);
for (const [number, step] of truth.steps.entries()) {
  const calls = step.tool_calls.map((call, place) => ({
    type: "tool_call",
    id: `${session}-${number}-${place}`,
    name: call.name,
    arguments: call.arguments,
  }));
  const text = step.assistant_text ? [{ type: "text", content: step.assistant_text }] : [];
  chat(inRun, history, [...text, ...calls]);
  history.push({ role: "assistant", parts: [...text, ...calls] });
  for (const [place, call] of step.tool_calls.entries()) {
    const response = call.result ?? call.error;
    history.push({ role: "tool", parts: [{ type: "tool_call_response", id: calls[place].id, response }] });
  }
}
run.addEvent("gen_ai.evaluation.result", {
  "gen_ai.evaluation.name": "won",
  "gen_ai.evaluation.score.value": 1,
});
run.end();
await provider.shutdown();
