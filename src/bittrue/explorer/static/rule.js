// The rule of a cast on an Ascend product with its evidence, and AI Engine's rounding modes on one accumulator.

import { ask, complain, draw, forgive, h, pattern, put, say, table } from "./dom.js";

export async function drawRule({ get, view }) {
  const asked = { product: get("product"), src: get("src"), dst: get("dst"), mode: get("mode"), value: get("x") };
  for (const name of ["product", "src", "dst", "mode"]) put(name, asked[name]);
  put("x", asked.value);
  const engine = { arch: get("arch"), srs: get("srs"), shift: get("shift"), to: get("to"), saturation: get("saturation") };
  for (const [name, text] of Object.entries(engine)) put(name, text);
  const [rule, srs] = await Promise.allSettled([ask("rule", asked), ask("srs", engine)]);
  if (rule.value === null || srs.value === null) return null;
  forgive(view);
  if (rule.value) drawCast(rule.value);
  else complain(view, rule.reason, { value: "x" });
  if (srs.value) drawEngine(srs.value);
  else complain(view, srs.reason);
  return rule.value?.title ?? "Rules";
}

function drawCast(record) {
  const status = { used: "used", default: `default: ${record.effective}`, ignored: "ignored", replaced: `replaced by ${record.effective}` }[record.status];
  const row = (name, ...children) => [h("dt", {}, name), h("dd", {}, children)];
  draw(document.getElementById("rules"),
    h("div", { class: "pair two" },
      h("article", { class: "card" },
        h("div", { class: "card-head" }, h("h2", {}, record.title), h("span", { class: `badge ${record.evidence === "documented" ? "good" : "warn"}` }, record.evidence)),
        h("dl", {},
          row("mode", h("code", {}, record.requested), ` ${status}, because ${record.reason}`),
          row("modes", record.modes.join(", ")),
          row("what happens", `${record.semantics}: ${record.meaning}`),
          row("overflow", record.overflow),
          row("source", record.document)),
        record.questions.length ? h("h3", {}, "Open questions that bear on it") : null,
        record.questions.length ? h("ol", { class: "questions" }, record.questions.map((q) => h("li", { value: String(q.number) }, marked(q.text), " ", h("code", {}, q.answer)))) : null),
      record.casts ? h("article", { class: "card" },
        h("div", { class: "card-head" }, h("h2", {}, `${record.casts.given} `, h("span", { class: "soft" }, `as ${record.casts.source}, in every mode`))),
        table("What each mode gives", ["mode", "effect", "code", ["bits", "opt"], ["value", "num"]],
          record.casts.modes.map((m) => ({ cells: [m.mode, m.effect.replace("-> ", "\u2192 "), h("code", {}, m.code), pattern(m.fields), m.text] })))) : null),
    h("article", { class: "card" },
      h("div", { class: "card-head" }, h("h2", {}, "Rows of the rule book")),
      table("Rows of the rule book", ["api", "modes", "default", "this mode", "evidence", "document"],
        record.rows.map((r) => ({ cells: [r.api, r.modes, r.default, r.effect, r.evidence, r.document] })))));
  say(`${record.title}: ${record.requested} ${status}; ${record.evidence}`);
}

/** Text in which `...` is code. */
const marked = (text) => text.split("`").map((piece, i) => (i % 2 ? h("code", {}, piece) : piece));

function drawEngine(record) {
  draw(document.getElementById("srs-table"),
    h("p", { class: "soft" }, `The quotient is ${record.quotient}; ${record.to} on ${record.arch}:`),
    record.note ? h("p", {}, h("span", { class: "badge warn" }, "shift below 0"), ` ${record.note}`) : null,
    table("Rounding modes of the AI Engine", ["mode", ["register", "num"], "as", ["result", "num"], ["result \u2212 quotient", "num"]],
      record.modes.map((m) => ({ cells: [m.mode, String(m.register), m.same, m.result, m.error] }))));
}
