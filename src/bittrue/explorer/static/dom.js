// Elements, requests, messages: what every view uses. No arithmetic on numbers happens in these scripts.

/** Make an element: h("p", {class: "soft"}, "text", child). Properties starting with "on" are listeners. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Make an SVG element. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put new children into an element; the focus stays on the child with the same data-key. */
export function draw(element, ...children) {
  const held = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (held !== undefined) element.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

/** A table: heads are texts, or [text, class]; cells are children, or [child, class]. Scrolls by itself where narrow. */
export function table(caption, heads, rows) {
  const pair = (cell) => (Array.isArray(cell) ? cell : [cell, ""]);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col", class: pair(head)[1] || null }, pair(head)[0])))),
      h("tbody", {}, rows.map((row) => h("tr", { class: row.class || null },
        row.cells.map((cell, i) => h(i ? "td" : "th", { scope: i ? null : "row", class: pair(cell)[1] || pair(heads[i])[1] || null }, pair(cell)[0])))))));
}

const waiting = new Map();

/** Fields of requests that may be left empty; all others are asked for. */
const OPTIONAL = new Set(["code", "second", "at", "zoom", "relu", "rounding", "overflow", "scale_rule", "nonfinite"]);

/** Ask the Python side. Returns its record, or null where a newer request of the same kind has overtaken this one. */
export async function ask(question, fields) {
  waiting.get(question)?.abort();
  const controller = new AbortController();
  waiting.set(question, controller);
  const query = new URLSearchParams(Object.entries(fields).filter(([name, text]) => text !== undefined && (text !== "" || !OPTIONAL.has(name))));
  try {
    const response = await fetch(`/api/${question}?${query}`, { signal: controller.signal });
    const record = await response.json();
    if (!response.ok) throw Object.assign(new Error(record.message), { field: record.field });
    return record;
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (error.field !== undefined) throw error;
    throw Object.assign(new Error("The explorer's server does not answer; is bittrue explore still running?"), { field: "" });
  }
}

/** Show a mistake beside its field, or at the first field of the view; other errors are none of the user's. */
export function complain(view, error, names = {}) {
  if (error.field === undefined) throw error;
  const id = names[error.field] ?? error.field;
  const first = view.querySelector("input, select").id;
  const place = document.getElementById(`${id}-error`) ?? document.getElementById(`${first}-error`);
  place.textContent = error.message;
  place.hidden = false;
  document.getElementById(id)?.setAttribute("aria-invalid", "true");
}

/** Take all messages of a view away. */
export function forgive(view) {
  for (const place of view.querySelectorAll(".error")) {
    place.hidden = true;
    place.textContent = "";
  }
  for (const field of view.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** Say something to screen readers. */
export function say(text) {
  const status = document.getElementById("status");
  if (status.textContent !== text) status.textContent = text;
}

/** Give a field a text, unless it is being typed into. */
export function put(id, text) {
  const field = document.getElementById(id);
  if (field !== document.activeElement && field.value !== text) field.value = text;
}

/** The bits of a code in the colours of their fields: [[kind, bits], ...]. */
export function pattern(fields) {
  return h("span", { class: "pattern" }, (fields ?? []).map(([kind, bits]) => h("span", { class: `ink-${kind}` }, bits)));
}

/** "5 * 2^-2" with raised exponents. */
export function superscripts(text) {
  return h("span", {}, text.replaceAll(" * ", " \u00d7 ").split(/(\^(?:-?\d+|\([^)]*\)))/).map((piece) =>
    piece.startsWith("^") ? h("sup", {}, piece.slice(1).replace(/^\((.*)\)$/, "$1").replaceAll("-", "\u2212")) : piece));
}
