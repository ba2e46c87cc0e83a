// Ascend's Fixpipe: the 64 bits of a parameter word beside its fields, and one accumulator's way through the steps.

import { ask, complain, draw, forgive, h, put, say } from "./dom.js";

const FIELDS = { scale: "scale", offset: "offset", wshift: "shift", signed: "signed" };
let bound = false;

export async function drawFixpipe({ get, set, view }) {
  const asked = { product: get("npu") || get("product"), qmode: get("qmode"), word: get("word"), acc: get("acc"), relu: get("relu") };
  for (const name of ["word", "acc"]) put(name, asked[name]);
  document.getElementById("relu").checked = asked.relu === "1";
  const change = async (field, text) => {
    try {
      const changed = await ask("fixpipe", { ...asked, word: get("word"), [field]: text });
      if (changed) await set({ word: changed.word.hex });
    } catch (error) {
      forgive(view);
      complain(view, error, { shift: "wshift" });
    }
  };
  view.change = change;
  if (!bound) listen(view);
  const record = await ask("fixpipe", asked);
  if (!record) return null;
  put("npu", record.product);
  const modes = document.getElementById("qmode");
  if (modes.dataset.arch !== String(record.arch)) {
    draw(modes, record.modes.map((name) => h("option", {}, name)));
    modes.dataset.arch = String(record.arch);
  }
  modes.value = record.mode.name;
  drawWord(record, change);
  drawWalk(record);
  const end = record.result;
  say(`${record.mode.name}: ${end.code} is ${end.text} in ${end.format}`);
  return `${record.mode.name} on ${record.product}`;
}

function listen(view) {
  bound = true;
  for (const [id, field] of Object.entries(FIELDS)) {
    const input = document.getElementById(id);
    input.addEventListener("change", () => view.change(field, input.type === "checkbox" ? (input.checked ? "1" : "0") : input.value.trim() || "0"));
  }
}

function drawWord(record, change) {
  const word = record.word;
  const card = document.getElementById("word-card");
  card.hidden = !word;
  if (!word) return;
  put("word", word.hex);
  put("scale", word.scale);
  put("offset", word.offset);
  put("wshift", word.shift);
  document.getElementById("signed").checked = word.signed;
  document.getElementById("wshift").closest(".field").hidden = !word.has_shift;
  draw(document.getElementById("word-bits"), word.fields.map((field) => h("div", { class: `word-field${field.name ? "" : " unread"}${field.ignored ? " ignored" : ""}` },
    h("div", { class: "bit-run" }, field.bits.map((bit) => h("button", {
      type: "button", class: `bit small ${bit.kind}${bit.set ? " set" : ""}`, "data-key": `word-${bit.bit}`, "data-bit": bit.bit,
      "aria-pressed": bit.set ? "true" : "false", "aria-label": `bit ${bit.bit}, ${field.name || "unused"}: ${bit.set}`, title: `bit ${bit.bit}`,
      onclick: () => change("flip", String(bit.bit)),
    }, String(bit.set)))),
    h("div", { class: "bit-name" }, h("span", { class: "soft" }, field.high === field.low ? `${field.high}` : `${field.high}\u2013${field.low}`), " ",
      field.name || "unused", field.name ? h("b", {}, ` ${field.meaning}`) : null, field.ignored ? h("span", { class: "badge warn" }, "not read") : null))));
}

function drawWalk(record) {
  const { mode, result } = record;
  draw(document.getElementById("walk"), h("article", { class: "card" },
    h("div", { class: "card-head" },
      h("h2", {}, "One accumulator on its way"),
      h("p", { class: "soft" }, `${mode.name} = ${mode.number}: ${mode.accumulators.join(" or ")} to ${mode.outputs.join(" or ") || "the same"}${mode.per_channel ? ", a word for each column" : ""}; NPU ${record.arch}`)),
    h("ol", { class: "walk" },
      record.steps.map((step) => h("li", { class: step.note ? "noted" : null },
        h("span", { class: "step-name" }, step.name),
        h("span", { class: "step-value", title: step.full }, step.value),
        h("span", { class: "step-formula" }, step.formula),
        step.note ? h("span", { class: "badge warn" }, step.note) : null)),
      h("li", { class: "end" },
        h("span", { class: "step-name" }, result.format),
        h("span", { class: "step-value" }, result.text),
        h("code", {}, result.code))),
    h("p", { class: "soft" }, `Source: ${mode.document}. Where it leaves something open, docs/evidence.md names bittrue's choice.`)));
}
