// Selection, keys and search. The address keeps the selection, so that a reload or a link finds it again.

const selected = { group: 0, rollout: null, step: null };
let data = null;
let plotlyReady = false;

const group = () => data.groups[selected.group];

function readAddress() {
  const values = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(selected)) {
    const value = Number.parseInt(values.get(name), 10);
    selected[name] = Number.isNaN(value) ? null : value;
  }
  if (!data.groups[selected.group]) Object.assign(selected, { group: data.first, rollout: null, step: null });
  if (!group().rollouts[selected.rollout]) selected.rollout = selected.step = null;
  else if (!(selected.step in group().rollouts[selected.rollout].edge)) selected.step = null;
}

function writeAddress() {
  const known = Object.entries(selected).filter(([, value]) => value !== null);
  history.replaceState(null, "", `#${new URLSearchParams(known)}`);
}

function showGroup(index) {
  Object.assign(selected, { group: index, rollout: null, step: null });
  renderGroup();
  renderSelection();
}

function renderGroup() {
  const shown = group();
  byId("task").textContent = [shown.label, shown.task].filter(Boolean).join(" · ");
  byId("facts").textContent = shown.facts;
  byId("notes").replaceChildren(...shown.notes.map((note) => element("p", { className: "note" }, note)));
  byId("part").replaceChildren(...partOptions(shown.rollouts, data.names));
  for (const name of ["won", "lost"]) {
    const none = element("li", { className: "quiet" }, "none: no move here is better or worse than another");
    byId(name).replaceChildren(...(shown[name].length ? shown[name].map((edge) => moveItem(shown, edge)) : [none]));
  }
  const named = shown.nodes.map((_, place) => place).filter((place) => ["milestone", "trap"].includes(shown.nodes[place].kind));
  named.sort((a, b) => shown.nodes[a].kind.localeCompare(shown.nodes[b].kind) || shown.nodes[b].score - shown.nodes[a].score);
  byId("states").tBodies[0].replaceChildren(...named.map((place) => stateRow(shown, place)));
  markGroup();
  renderRows();
}

// Scrolls inside the list only: the page itself stays where the reader is.
function markGroup() {
  const list = byId("groups"), nav = list.parentElement;
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const button = list.querySelector(`[data-group="${selected.group}"]`);
  button.setAttribute("aria-current", "true");
  nav.scrollTop += button.getBoundingClientRect().top - nav.getBoundingClientRect().top - nav.clientHeight / 3;
  list.scrollLeft += button.getBoundingClientRect().left - list.getBoundingClientRect().left;
}

function renderRows() {
  const shown = group(), part = byId("part").value;
  const longest = Math.max(...shown.rollouts.map((rollout) => rollout.edge.length));
  const scale = part === "other" ? data.scales[1] : data.scales[0];
  byId("rollouts").replaceChildren(...shown.rollouts.map((_, index) => rolloutRow(shown, index, part, scale, longest)));
}

function renderSelection() {
  const { rollout, step } = selected;
  for (const item of byId("rollouts").querySelectorAll("[aria-current]")) item.removeAttribute("aria-current");
  if (rollout !== null) {
    const row = byId("rollouts").children[rollout];
    row.querySelector(".who").setAttribute("aria-current", "true");
    if (step !== null) row.querySelectorAll(".cell")[step].setAttribute("aria-current", "true");
  }
  byId("clear").hidden = rollout === null;
  showDetails(details(), rollout !== null);
  if (plotlyReady) drawGraph(byId("graph"), group(), rollout, step);
  writeAddress();
}

function details() {
  const { rollout, step } = selected, shown = group();
  if (rollout !== null && step !== null) return stepDetails(shown, rollout, step, data.names);
  if (rollout !== null) return rolloutDetails(shown, rollout);
  if (shown.won.length) return moveDetails(shown, shown.won[0], "The move that won most");
  return nodeDetails(shown, 0);
}

function select(rollout, step = null) {
  Object.assign(selected, { rollout, step });
  renderSelection();
}

function showDetails(parts, chosen = true) {
  const panel = byId("panel"), close = element("button", { type: "button", className: "close", dataset: { close: "" } }, "Close");
  panel.replaceChildren(...(chosen ? [close] : []), ...parts);
  panel.classList.toggle("chosen", chosen);
  panel.scrollTop = 0;
}

function onClick(event) {
  const target = event.target.closest("button");
  if (!target) return;
  const { dataset } = target;
  if (target.id === "clear" || "close" in dataset) select(null);
  else if (dataset.group) showGroup(Number(dataset.group));
  else if (dataset.go) goTo(...dataset.go.split(" ").map(Number));
  else if (dataset.rollout) select(Number(dataset.rollout), dataset.step ? Number(dataset.step) : null);
  else if (dataset.node) showDetails(nodeDetails(group(), Number(dataset.node)));
  else if (dataset.edge) showDetails(moveDetails(group(), Number(dataset.edge)));
}

function goTo(index, rollout, step) {
  showGroup(index);
  if (!Number.isNaN(rollout) && rollout !== undefined) select(rollout, step ?? null);
  byId("group").scrollIntoView({ block: "start" });
  byId("group").focus({ preventScroll: true });
}

const clamp = (value, length) => Math.max(0, Math.min(length - 1, value));

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return leave();
  if (event.target.closest("input, select, summary, .js-plotly-plot")) return;
  const rollouts = group().rollouts, { rollout, step } = selected;
  const moves = {
    "[": () => showGroup(clamp(selected.group - 1, data.groups.length)),
    "]": () => showGroup(clamp(selected.group + 1, data.groups.length)),
    ArrowDown: () => select(clamp(rollout === null ? 0 : rollout + 1, rollouts.length), step === null ? null : 0),
    ArrowUp: () => select(clamp(rollout === null ? 0 : rollout - 1, rollouts.length), step === null ? null : 0),
    ArrowRight: () => select(rollout ?? 0, clamp(step === null ? 0 : step + 1, rollouts[rollout ?? 0].edge.length)),
    ArrowLeft: () => select(rollout ?? 0, clamp(step === null ? 0 : step - 1, rollouts[rollout ?? 0].edge.length)),
    "/": () => byId("search").focus(),
  };
  const scrolls = ["ArrowDown", "ArrowUp"].includes(event.key) && rollout === null;
  if (!moves[event.key] || scrolls) return;
  event.preventDefault();
  moves[event.key]();
}

function leave() {
  byId("search").value = "";
  byId("hits").replaceChildren();
  select(null);
}

// Search over tasks, rollouts, states and actions of every group on the page.
function onSearch() {
  const wanted = byId("search").value.trim().toLowerCase();
  const hits = wanted.length < 2 ? [] : data.groups.flatMap((shown, index) => hitsIn(shown, index, wanted)).slice(0, 40);
  const none = wanted.length < 2 || hits.length ? [] : [element("li", { className: "quiet" }, "nothing found")];
  byId("hits").replaceChildren(...hits.map(([go, text]) => element("li", {}, element("button", { type: "button", dir: "auto", dataset: { go } }, text))), ...none);
}

function hitsIn(shown, index, wanted) {
  const found = shown.task.toLowerCase().includes(wanted) ? [[`${index}`, shown.task]] : [];
  const matching = new Set(shown.texts.flatMap((text, place) => (text.toLowerCase().includes(wanted) ? [place] : [])));
  shown.rollouts.forEach((rollout, row) => {
    if (rollout.id.toLowerCase().includes(wanted)) found.push([`${index} ${row}`, `${rollout.id} · ${shown.task.slice(0, 40)}`]);
    const step = rollout.edge.findIndex((_, at) => matching.has(rollout.action[at]) || matching.has(rollout.seen[at]));
    if (step < 0) return;
    const text = shown.texts[matching.has(rollout.action[step]) ? rollout.action[step] : rollout.seen[step]];
    const start = Math.max(0, text.toLowerCase().indexOf(wanted) - 30);
    found.push([`${index} ${row} ${step}`, `${rollout.id}, step ${step + 1}: ${text.slice(start, start + 120)}`]);
  });
  return found;
}

async function startPlotly() {
  const code = await unpack("plotly");
  document.head.append(element("script", { textContent: code }));
  plotlyReady = true;
  drawAll();
  if (!data.groups.length) return;
  byId("graph").on("plotly_click", (event) => {
    const place = event.points.find((point) => point.customdata)?.customdata;
    if (place) showDetails(place[0] === "node" ? nodeDetails(group(), place[1]) : moveDetails(group(), place[1]));
  });
}

function drawAll() {
  for (const target of document.querySelectorAll("[data-figure]")) drawFigure(target, data.figures[target.dataset.figure]);
  if (data.groups.length) drawGraph(byId("graph"), group(), selected.rollout, selected.step);
}

async function start() {
  data = JSON.parse(await unpack("data"));
  if (data.groups.length) {
    readAddress();
    renderGroup();
    renderSelection();
    document.addEventListener("click", onClick);
    document.addEventListener("keydown", onKey);
    byId("search").addEventListener("input", onSearch);
    byId("part").addEventListener("change", () => { renderRows(); renderSelection(); });
  }
  await startPlotly();
  dark.addEventListener("change", drawAll);
  document.body.dataset.ready = "true";
  const { refresh } = document.body.dataset;
  if (refresh) setTimeout(() => location.reload(), 1000 * Number(refresh));
}

start().catch((error) => {
  byId("failure").textContent = `This page needs a browser with DecompressionStream (Chrome 80, Firefox 113, Safari 16.4 or later): ${error.message}`;
  byId("failure").hidden = false;
  throw error;
});
