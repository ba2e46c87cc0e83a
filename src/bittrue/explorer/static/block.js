// A block: shared exponent or scale, level-2 exponents, mantissas, and what each bit of its bytes belongs to.

import { ask, draw, h, put, s, say, superscripts, table } from "./dom.js";

const NAMES = { rounding: "Rounding", overflow: "Overflow", scale_rule: "Scale rule", nonfinite: "Inf and NaN" };

export async function drawBlock({ get, set }) {
  const asked = Object.fromEntries(["block", "values", ...Object.keys(NAMES)].map((name) => [name, get(name)]));
  put("block", asked.block);
  put("values", asked.values);
  const record = await ask("block", asked);
  if (!record) return null;
  options(record, set);
  const { head, elements, bytes, format } = record;
  const mark = (i) => {
    for (const piece of document.querySelectorAll("#blocks [data-of]")) piece.classList.toggle("lit", i !== null && piece.dataset.of.split(" ").includes(String(i)));
  };
  const group = record.group;
  draw(document.getElementById("blocks"),
    h("article", { class: "card" },
      h("div", { class: "card-head" }, h("h2", {}, format.name), h("p", { class: "soft" }, format.text.slice(format.text.indexOf(":") + 2).split(";")[0])),
      h("div", { class: "decision" },
        h("div", { class: "piece" }, h("span", { class: "piece-name" }, head.name), h("code", { class: "piece-bits exponent" }, head.bits), h("span", {}, superscripts(head.text))),
        group ? h("div", { class: "piece" }, h("span", { class: "piece-name" }, "E2"), h("code", { class: "piece-bits dot" }, elements.filter((_, i) => i % group === 0).map((e) => e.shift).join(" "))) : null,
        h("div", { class: "piece" }, h("span", { class: "piece-name" }, "value"), h("span", { class: "formula" }, superscripts(record.formula)))),
      h("h3", {}, `${bytes.length} bytes, the first at the left; bits from 7 down to 0`),
      h("ol", { class: "bytes" }, bytes.map((byte, i) => h("li", { class: "byte" },
        h("span", { class: "byte-hex" }, byte.hex),
        h("span", { class: "byte-bits" }, byte.parts.map((part) => h("span", {
          class: `byte-part ${part.kind}${part.of % 2 ? " odd" : ""}`, "data-of": of(part, group), title: `${part.name}: ${part.bits}`,
        }, part.bits))),
        h("span", { class: "byte-at" }, String(i)))))),
    h("div", { class: "pair two" },
      h("article", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "Elements")), elementTable(record, mark)),
      h("article", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "What is left of the values")),
        h("p", { class: "keys" }, h("span", { class: "of-given" }, "given"), h("span", {}, "in the block")), chart(elements))));
  say(`${format.name}: ${head.name} ${head.text}, bytes ${bytes.map((byte) => byte.hex).join(" ")}`);
  return `A block of ${format.name}`;
}

/** The elements that a piece bears on: a level-2 exponent on its whole group. */
function of(part, group) {
  if (part.of < 0) return "all";
  if (part.kind !== "dot") return String(part.of);
  return Array.from({ length: group }, (_, i) => part.of * group + i).join(" ");
}

function elementTable(record, mark) {
  const { elements, group } = record;
  const heads = ["i", ["given", "num"], ...(group ? [["E2", "num"]] : []), "bits", ["element", "num"], ["value", "num"], ["error", "num"]];
  const shown = table("Elements of the block", heads, elements.map((e, i) => ({
    class: e.filled ? "off" : "",
    cells: [String(i), e.given, ...(group ? [e.shift] : []), h("code", { class: "ink-significand" }, e.code), e.element, e.value, e.error],
  })));
  shown.querySelectorAll("tbody tr").forEach((row, i) => {
    row.addEventListener("mouseenter", () => mark(i));
    row.addEventListener("mouseleave", () => mark(null));
  });
  return shown;
}

/** Bars of the values in the block, circles of those that were given. */
function chart(elements) {
  const width = 500, height = 340, step = width / elements.length;
  const y = (at) => height / 2 - at * (height / 2 - 8);
  return h("div", { class: "chart" }, s("svg", { viewBox: `0 0 ${width} ${height + 16}`, role: "img", "aria-label": "Values given and values in the block; the table beside says them in numbers" },
    elements.map((e, i) => s("g", {},
      s("title", {}, `${i}: ${e.given} becomes ${e.value}`),
      e.value_at === null ? null : s("rect", { class: "bar", "data-of": String(i), x: (i * step + step * 0.2).toFixed(1), width: (step * 0.6).toFixed(1), y: Math.min(y(0), y(e.value_at)).toFixed(1), height: Math.max(Math.abs(y(e.value_at) - y(0)), 1).toFixed(1) }),
      e.given_at === null || e.filled ? null : s("circle", { class: "dot", cx: ((i + 0.5) * step).toFixed(1), cy: y(e.given_at).toFixed(1), r: Math.min(5, step * 0.35).toFixed(1) }),
      elements.length <= 16 || i % 4 === 0 ? s("text", { x: ((i + 0.5) * step).toFixed(1), y: height + 12, "text-anchor": "middle" }, String(i)) : null)),
    s("line", { class: "zero-line", x1: 0, x2: width, y1: y(0), y2: y(0) })));
}

function options(record, set) {
  const place = document.getElementById("block-options");
  const wanted = JSON.stringify(record.options);
  if (place.dataset.options === wanted) return;
  place.dataset.options = wanted;
  draw(place, Object.entries(record.options).map(([name, { words, chosen }]) => h("div", { class: "field" },
    h("label", { for: name }, NAMES[name]),
    h("select", { id: name, "data-key": name, "aria-describedby": `${name}-error`, onchange: (event) => set({ [name]: event.target.value }) },
      words.map((word) => h("option", { selected: word === chosen }, word))),
    h("p", { class: "error", id: `${name}-error`, role: "alert", hidden: true }))));
}
