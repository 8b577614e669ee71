// The figures are made by plotly on the Python side; here they get the theme and the lit path.

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const BUTTONS = [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
const CONFIG = { displaylogo: false, responsive: true, scrollZoom: false, modeBarButtons: BUTTONS };

function themed(layout) {
  const axis = { color: colour("--quiet"), gridcolor: colour("--line"), linecolor: colour("--line"), zerolinecolor: colour("--line") };
  const label = { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--text"), size: 12 }, align: "left" };
  const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name));
  return {
    ...layout,
    font: { family: "system-ui, DejaVu Sans, sans-serif", size: 12, color: colour("--text") },
    hoverlabel: label,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--quiet"), activecolor: colour("--text") },
    ...Object.fromEntries(axes.map((name) => [name, { ...layout[name], ...axis }])),
  };
}

function drawFigure(target, figure) {
  return Plotly.react(target, figure.data, themed(figure.layout), CONFIG);
}

// The group's figure; with a rollout, its path between the faded moves and the states on top.
function drawGraph(target, group, rollout, step) {
  if (rollout === null) return drawFigure(target, group.figure);
  const edges = group.rollouts[rollout].edge;
  const moves = group.figure.data.slice(0, -1).map((trace) => ({ ...trace, opacity: 0.18 }));
  const path = [pathTrace(group, edges, colour("--focus"), 2.5)];
  if (step !== null) path.push(pathTrace(group, [edges[step]], colour("--text"), 5));
  return drawFigure(target, { data: [...moves, ...path, group.figure.data.at(-1)], layout: group.figure.layout });
}

function pathTrace(group, edges, color, width) {
  const x = [], y = [], size = [];
  for (const edge of edges) {
    const points = group.edges[edge].xy;
    if (!points) continue;
    x.push(...points[0], null);
    y.push(...points[1], null);
    size.push(...points[0].map((_, index) => (index === 3 ? 9 + width : 0)), 0);
  }
  return { type: "scatter", x, y, mode: "lines+markers", line: { color, width, shape: "spline" }, hoverinfo: "skip", marker: { color, size, symbol: "arrow", angleref: "previous", opacity: 1, line: { width: 0 } } };
}
