// One group: its rollouts as rows of steps, its decisive moves, its states, and the details of a selection.

const PARTS = [
  ["advantage", "advantage (all parts)"],
  ["step", "step credit only"],
  ["graph", "distance part"],
  ["milestone", "milestone part"],
  ["episode", "rollout's own score"],
  ["other", "the other estimator"],
];

function partOptions(rollouts, names) {
  return PARTS.filter(([part]) => rollouts.some((rollout) => rollout[part])).map(([part, label]) =>
    element("option", { value: part }, part === "other" ? names[1] : label));
}

function cellOf(value, scale) {
  const share = Math.min(1, Math.abs(value) / scale);
  const made = element("button", { type: "button", className: `cell ${side(value)}`, tabIndex: -1 }, side(value) === "won" ? "+" : side(value) === "lost" ? "−" : "·");
  made.style.setProperty("--share", `${Math.round(18 + 82 * share)}%`);
  return made;
}

function rolloutRow(group, index, part, scale, longest) {
  const rollout = group.rollouts[index];
  const label = `${rollout.won ? "✓" : "✗"} ${rollout.id}`;
  const who = element("button", { type: "button", className: "who", dataset: { rollout: index }, title: `${rollout.id}, score ${rollout.score}, ${rollout.edge.length} steps` }, element("bdi", {}, label));
  const cells = element("div", { className: "cells" });
  cells.style.gridTemplateColumns = `repeat(${longest}, minmax(11px, 30px))`;
  (rollout[part] ?? rollout.edge.map(() => null)).forEach((value, step) => {
    const cell = cellOf(value, scale);
    Object.assign(cell.dataset, { rollout: index, step });
    cell.setAttribute("aria-label", `rollout ${rollout.id}, step ${step + 1}, ${signed(value)}`);
    cell.title = `step ${step + 1}: ${group.texts[rollout.action[step]].slice(0, 120)} (${signed(value)})`;
    cells.append(cell);
  });
  return element("div", { className: "row" }, who, cells);
}

function moveItem(group, edge) {
  const move = group.edges[edge], from = group.nodes[move.source];
  const rate = `${move.successes} of ${move.visits} succeeded`;
  const others = move.others === null ? "" : `, other moves ${Math.round(100 * move.others)}%`;
  return element("li", {}, element("button", { type: "button", dataset: { edge } },
    element("span", { className: "from quiet", dir: "auto" }, stateLabel(group, from)),
    element("span", { className: "do", dir: "auto" }, move.short),
    element("span", { className: `value ${side(move.step)}` }, signed(move.step)),
    element("span", { className: "quiet" }, rate + others)));
}

function stateLabel(group, node) {
  const text = ["goal", "end"].includes(node.kind) ? node.title : group.texts[node.text];
  return [node.name, text.slice(0, 160)].filter(Boolean).join(": ");
}

function stateRow(group, place) {
  const node = group.nodes[place];
  const name = element("button", { type: "button", className: "link", dataset: { node: place } }, node.name);
  const text = element("div", { className: "clip", dir: "auto" }, group.texts[node.text].slice(0, 400));
  const numbers = [node.visits, node.successes, node.score.toFixed(2)].map((value) => element("td", { className: "number" }, String(value)));
  return element("tr", {}, element("td", {}, name), element("td", {}, text), ...numbers);
}

const heading = (text) => element("h4", {}, text);
const block = (text) => element("pre", { dir: "auto", tabIndex: 0 }, text);

function partBars(rollout, step, names) {
  const grid = element("div", { className: "parts" });
  const shown = [["graph", "distance"], ["milestone", "milestones"], ["episode", "rollout's score"], ["advantage", "advantage"]];
  const rows = shown.filter(([part]) => rollout[part]);
  if (!rollout.graph && rollout.step) rows.unshift(["step", "step"]);
  if (rollout.other) rows.push(["other", names[1]]);
  const largest = Math.max(...rows.map(([part]) => Math.abs(rollout[part][step])), 1e-9);
  for (const [part, label] of rows) grid.append(...partBar(label, rollout[part][step], largest, part === "advantage"));
  return grid;
}

function partBar(label, value, largest, total) {
  const fill = element("span", { className: `fill ${side(value)}` });
  const width = (50 * Math.abs(value)) / largest;
  Object.assign(fill.style, { width: `${width}%`, left: `${value < 0 ? 50 - width : 50}%` });
  const name = total ? "total" : "";
  return [element("span", { className: name }, label), element("span", { className: "track" }, fill), element("span", { className: `number ${name}` }, signed(value))];
}

function stepDetails(group, index, step, names) {
  const rollout = group.rollouts[index], move = group.edges[rollout.edge[step]];
  const target = group.nodes[move.target], said = rollout.said[step];
  return [
    element("h3", {}, `Step ${step + 1} of ${rollout.edge.length}`),
    element("p", { className: "quiet" }, element("bdi", {}, rollout.id), ` · ${rollout.won ? "succeeded" : "failed"} · score ${rollout.score}`),
    heading("advantage"), partBars(rollout, step, names),
    heading("why this step?"), element("p", {}, move.why), element("p", {}, rollout.why),
    heading("action"), block(group.texts[rollout.action[step]]),
    ...(said === null ? [] : [heading("said"), block(group.texts[said])]),
    heading("observation"), block(group.texts[rollout.seen[step]]),
    heading("led to"), element("p", { dir: "auto" }, stateLabel(group, target)),
    ...(rollout.flags[step].length ? [heading("flags"), element("p", {}, rollout.flags[step].join(", "))] : []),
  ];
}

function rolloutDetails(group, index) {
  const rollout = group.rollouts[index];
  const steps = rollout.edge.map((_, step) => element("li", {}, element("button", { type: "button", dataset: { rollout: index, step } },
    element("bdi", { className: "do" }, group.texts[rollout.action[step]].slice(0, 200)),
    element("span", { className: `value ${side(rollout.advantage[step])}` }, signed(rollout.advantage[step])))));
  return [
    element("h3", {}, element("bdi", {}, rollout.id)),
    element("p", { className: "quiet" }, `${rollout.won ? "succeeded" : "failed"} · score ${rollout.score} · ${rollout.edge.length} steps`),
    element("p", {}, rollout.why),
    heading("its steps, with their advantage"), element("ol", { className: "steps" }, ...steps),
  ];
}

function nodeDetails(group, place) {
  const node = group.nodes[place];
  const list = element("dl", {}, ...node.lines.flatMap(([name, how]) => [element("dt", {}, name), element("dd", {}, how)]));
  const text = ["goal", "end"].includes(node.kind) ? [] : [heading("state"), block(group.texts[node.text])];
  return [element("h3", {}, [node.name, node.title].filter(Boolean).join(" · ")), element("p", {}, node.facts), ...text, heading("how its scores came about"), list];
}

function moveDetails(group, place, title = "Move") {
  const move = group.edges[place];
  const users = group.rollouts.flatMap((rollout, index) => (rollout.edge.includes(place)
    ? [element("button", { type: "button", className: "link", dataset: { rollout: index, step: rollout.edge.indexOf(place) } }, element("bdi", {}, `${rollout.won ? "✓" : "✗"} ${rollout.id}`)), " "] : []));
  return [
    element("h3", {}, title), element("p", {}, `${move.facts}.`),
    heading("why"), element("p", {}, move.why),
    heading("action"), block(move.actions.join("\n")),
    heading("from"), block(stateLabel(group, group.nodes[move.source])),
    heading("to"), block(stateLabel(group, group.nodes[move.target])),
    heading("rollouts that made it"), element("p", {}, ...users),
  ];
}
