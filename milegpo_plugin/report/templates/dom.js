"use strict";
// Trace text enters the page through text nodes only.

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const { dataset = {}, attributes = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(tag), rest);
  Object.assign(made.dataset, dataset);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const signed = (value) => (value === null || value === undefined ? "–" : (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(2));
const side = (value) => (value > 1e-9 ? "won" : value < -1e-9 ? "lost" : "");

// A payload is gzip, as base64, in an inert script element.
async function unpack(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
