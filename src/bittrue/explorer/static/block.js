// A block: shared exponent or scale, level-2 exponents, mantissas, and what each bit of its bytes belongs to.

import { ask, draw, h, put, say, superscripts, table } from "./dom.js";

const NAMES = { rounding: "Rounding", overflow: "Overflow", scale_rule: "Scale rule", nonfinite: "Inf and NaN" };

export async function drawBlock({ get, set }) {
  const asked = Object.fromEntries(["block", "values", ...Object.keys(NAMES)].map((name) => [name, get(name)]));
  put("block", asked.block);
  put("values", asked.values);
  const record = await ask("block", asked);
  if (!record) return false;
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
    h("article", { class: "card" },
      h("div", { class: "card-head" }, h("h2", {}, "Elements")),
      elementTable(record, mark)));
  say(`${format.name}: ${head.name} ${head.text}, bytes ${bytes.map((byte) => byte.hex).join(" ")}`);
  return true;
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
