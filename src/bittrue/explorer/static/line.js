// A window of the number line: values as dots on a row for each format, or their density where there are too many.

import { ask, h, s, superscripts } from "./dom.js";

const ROW = 74;
const TOP = 34;
let bound = false;

export async function drawLine({ get, set, view, asked }) {
  const box = document.getElementById("line");
  const question = { ...asked, at: get("at"), zoom: get("zoom") };
  const record = await ask("line", question);
  if (!record) return null;
  render(box, record, get, set);
  document.getElementById("line-about").replaceChildren("window ", superscripts(record.width), " wide");
  const move = async (name, point) => {
    if (name === "home") return set({ at: "", zoom: "" }, true);
    const moved = await ask("line", { ...asked, at: get("at"), zoom: get("zoom"), move: name, point });
    return moved && set({ at: moved.at, zoom: String(moved.zoom) }, true);
  };
  box.go = move;
  if (!bound) listen(box, view);
  return true;
}

function listen(box, view) {
  bound = true;
  for (const button of view.querySelectorAll("[data-move]")) button.addEventListener("click", () => box.go(button.dataset.move));
  const keys = { ArrowLeft: "left", ArrowRight: "right", "+": "in", "=": "in", "-": "out", Home: "home", End: "all" };
  box.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    box.go(keys[event.key]);
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== box) return;
    event.preventDefault();
    const area = box.getBoundingClientRect();
    box.go(event.deltaY < 0 ? "in" : "out", String(Math.round((1000 * (event.clientX - area.left)) / area.width)));
  }, { passive: false });
  let from = null;
  const along = (event) => event.clientX - from;
  box.addEventListener("pointerdown", (event) => {
    if (event.button === 0) from = event.clientX;
  });
  box.addEventListener("pointermove", (event) => {
    if (from === null || Math.abs(along(event)) < 4) return;
    box.setPointerCapture(event.pointerId);
    box.firstElementChild.style.translate = `${along(event)}px`;
  });
  const drop = (event) => {
    if (from !== null && box.hasPointerCapture(event.pointerId)) {
      // the middle of the window goes as far to the other side
      box.go("to", String(Math.round(500 - (1000 * along(event)) / box.clientWidth)));
    }
    from = null;
  };
  box.addEventListener("pointerup", drop);
  box.addEventListener("pointercancel", drop);
  new ResizeObserver(() => box.redraw?.()).observe(box);
}

function render(box, record, get, set) {
  let before = 0;
  box.redraw = () => {
    const width = Math.round(box.clientWidth);
    if (width === before) return;
    before = width;
    box.replaceChildren(picture(record, width, get, set));
  };
  box.redraw();
}

function picture(record, width, get, set) {
  const height = TOP + record.rows.length * ROW + 26;
  const x = (place) => (place * width).toFixed(1);
  const inside = (mark) => mark && mark.x >= 0 && mark.x <= 1;
  const side = (mark) => (mark && mark.x < 0 ? "\u2190 " : mark && mark.x > 1 ? "\u2192 " : "");
  const bottom = TOP + record.rows.length * ROW;
  const anchor = (place) => (place < 0.08 ? "start" : place > 0.92 ? "end" : "middle");
  return s("svg", { width, height, role: "img", "aria-label": label(record) },
    record.axis.map((tick) => s("g", { class: "tick" },
      s("line", { x1: x(tick.x), x2: x(tick.x), y1: TOP - 6, y2: bottom }),
      s("text", { x: x(tick.x), y: bottom + 18, "text-anchor": anchor(tick.x) }, tick.text))),
    record.rows.map((row, i) => rowOf(row, i, x, width, get, set)),
    inside(record.value)
      ? s("g", { class: "given" },
        s("line", { x1: x(record.value.x), x2: x(record.value.x), y1: 20, y2: bottom }),
        s("text", { x: x(record.value.x), y: 14, "text-anchor": anchor(record.value.x) }, record.value.text))
      : record.value && s("g", { class: "given" },
        s("text", { x: record.value.x < 0 ? 4 : width - 4, y: 14, "text-anchor": record.value.x < 0 ? "start" : "end" }, side(record.value) + record.value.text)));
}

function rowOf(row, i, x, width, get, set) {
  const first = i === 0;
  const base = TOP + i * ROW + 46;
  const parts = [
    s("text", { class: "name", x: 4, y: base - 28 }, `${row.format}: ${row.total} ${row.total === "1" ? "value" : "values"}`),
    s("line", { class: "base", x1: 0, x2: "100%", y1: base, y2: base }),
  ];
  if (row.bins.length) {
    const step = 1 / row.bins.length;
    parts.push(row.bins.map((n, k) => n > 0 && s("rect", { class: "bin", x: x(k * step), width: x(step), y: (base - 3 - 21 * n).toFixed(1), height: (3 + 21 * n).toFixed(1) })).filter(Boolean));
  }
  const roomy = row.points.length * 18 < width;
  const named = row.points.length * (7 * row.points[0]?.code.length + 14) < width;
  parts.push(row.points.map((point) => {
    const taken = point.code === row.taken;
    const choose = () => set(first ? { code: point.code, at: get("at"), zoom: get("zoom") } : { value: point.typed, code: "" });
    return s("g", { class: `point ${point.kind}${taken ? " taken" : ""}`, onclick: choose },
      s("title", {}, `${point.code} = ${point.text}`),
      s("line", { x1: x(point.x), x2: x(point.x), y1: base - (roomy ? 9 : 7), y2: base + (roomy ? 9 : 7) }),
      roomy ? s("circle", { cx: x(point.x), cy: base, r: taken ? 6 : 4 }) : null,
      named ? s("text", { class: "code", x: x(point.x), y: base + 24, "text-anchor": point.x < 0.04 ? "start" : point.x > 0.96 ? "end" : "middle" }, point.code) : null,
      s("rect", { class: "hit", x: (parseFloat(x(point.x)) - 6).toFixed(1), y: base - 14, width: 12, height: 28 }));
  }));
  return s("g", { class: `row row-${i}` }, parts);
}

function label(record) {
  const rows = record.rows.map((row) => `${row.format} has ${row.total} values here`).join("; ");
  return `Number line from ${record.axis[0]?.text ?? ""} to ${record.axis.at(-1)?.text ?? ""}: ${rows}`;
}
