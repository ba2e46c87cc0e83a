// Every code of a small format as a heat map: rows by the upper bits, colour by magnitude and sign.

import { ask, draw, h, pattern, put, say } from "./dom.js";

const KINDS = { positive: "positive", negative: "negative", zero: "zero", infinite: "Inf", nan: "NaN" };

export async function drawMap({ get, set, link }) {
  put("map-format", get("format"));
  const record = await ask("map", { format: get("format") });
  if (!record) return null;
  const { cells, columns, format } = record;
  const chosen = Math.max(cells.findIndex((cell) => cell.code === get("code").toLowerCase()), 0);
  document.getElementById("map-name").textContent = format.name;
  document.getElementById("map-about").textContent = format.text.slice(format.text.indexOf(":") + 2);
  draw(document.getElementById("map-legend"), Object.entries(KINDS).filter(([kind]) => cells.some((cell) => cell.kind === kind))
    .map(([kind, name]) => h("span", { class: `key ${kind}`, "--level": "0.5" }, name)));
  const map = document.getElementById("map");
  map.style.setProperty("--columns", String(columns));
  const pick = (i, focus) => {
    for (const button of map.querySelectorAll(".chosen")) {
      button.classList.remove("chosen");
      button.tabIndex = -1;
    }
    const button = map.querySelector(`[data-key="${cells[i].code}"]`);
    button.classList.add("chosen");
    button.tabIndex = 0;
    if (focus) button.focus();
    detail(cells[i], format, link);
    set({ code: cells[i].code, at: "", zoom: "" }, true);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const digits = cells[0].code.length - 2;
  const heads = Array.from({ length: columns }, (_, i) => cells[i].code.slice(-1));
  if (map.dataset.format !== format.name) {
    draw(map, h("span", { class: "corner", "aria-hidden": "true" }), heads.map((head) => h("span", { class: "head", "aria-hidden": "true" }, head)),
      cells.map((cell, i) => [
        i % columns === 0 ? h("span", { class: "head", "aria-hidden": "true" }, cells.length > columns ? `${cell.code.slice(0, 1 + digits)}_` : "0x") : null,
        h("button", {
          type: "button", class: `cell ${cell.kind}${cell.level > 0.754 ? " deep" : ""}`, "--level": String(cell.level), "data-key": cell.code,
          tabindex: i === chosen ? "0" : "-1", "aria-label": `${cell.code}: ${cell.text}`, title: `${cell.code} = ${cell.text}`,
          onclick: () => pick(i),
          onkeydown: (event) => {
            const to = event.key === "Home" ? 0 : event.key === "End" ? cells.length - 1 : i + (steps[event.key] ?? NaN);
            if (!(to >= 0 && to < cells.length)) return;
            event.preventDefault();
            pick(to, true);
          },
        }, cell.label),
      ]));
    map.dataset.format = format.name;
  }
  for (const button of map.querySelectorAll(".cell")) {
    button.classList.toggle("chosen", button.dataset.key === cells[chosen].code);
    button.tabIndex = button.dataset.key === cells[chosen].code ? 0 : -1;
  }
  detail(cells[chosen], format, link);
  say(`${format.name}: ${cells.length} codes`);
  return `All codes of ${format.name}`;
}

function detail(cell, format, link) {
  draw(document.getElementById("map-detail"),
    h("p", { class: "value" }, cell.text),
    h("p", {}, h("code", {}, cell.code), " ", pattern(cell.fields)),
    h("p", {}, h("span", { class: "badge" }, cell.class)),
    h("p", {}, link({ view: "number", format: format.name, code: cell.code }, { class: "button" }, "See it in full")));
}
