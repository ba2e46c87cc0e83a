// One number in one format, or in two beside each other.

import { ask, draw, h, pattern, put, say, superscripts, table } from "./dom.js";
import { drawLine } from "./line.js";

export async function drawNumber({ get, set, link, view }) {
  const asked = { format: get("format"), value: get("code") ? undefined : get("value"), code: get("code"), second: get("second") };
  put("format", asked.format);
  put("second", asked.second);
  if (asked.code) put("code", asked.code);
  else put("value", asked.value);
  const [record, line] = await Promise.all([ask("number", asked), drawLine({ get, set, view, asked })]);
  if (!record || !line) return null;
  const { first, second } = record;
  put("code", asked.code ? asked.code : first.code);
  if (asked.code) put("value", first.value);
  const shown = [first, second].filter(Boolean);
  draw(document.getElementById("numbers"), shown.map((one, i) => card(one, i === 0 ? "first" : "second", get, set, link)));
  draw(document.getElementById("roundings"), shown.flatMap((one) => one.parts.map((part) => roundings(one, part))));
  document.getElementById("numbers").classList.toggle("two", shown.length > 1);
  document.getElementById("roundings").classList.toggle("two", shown.length > 1 || first.parts.length > 1);
  say(shown.map((one) => one.parts.map((part) => sentence(one, part)).join("; ")).join(". "));
  return `${asked.code || asked.value} in ${shown.map((one) => one.format.name).join(" and ")}`;
}

function sentence(one, part) {
  return `${part.label} ${one.format.name}: ${part.result.code} is ${part.result.short}, ${part.class}${part.error && part.error !== "0" ? `, error ${part.error} ulp` : ""}`;
}

function card(one, which, get, set, link) {
  const flip = async (bit) => {
    const base = which === "first" ? { format: get("format"), value: get("code") ? undefined : get("value"), code: get("code") } : { format: one.format.name, code: one.code };
    const flipped = await ask("number", { ...base, flip: bit });
    if (!flipped) return;
    // a bit of the second format makes its number the one that both show
    const number = which === "first" ? { code: flipped.first.code } : { code: "", value: flipped.first.value };
    await set({ ...number, at: "", zoom: "" });
  };
  return h("article", { class: `card number${one.parts.length > 1 ? " complex" : ""}`, "data-card": which, "aria-label": one.format.name },
    h("div", { class: "card-head" },
      h("h2", {}, one.format.name),
      h("p", { class: "soft" }, `${one.format.bits} bits${one.format.layout ? `, ${one.format.layout}` : ""}${one.format.specials ? `; ${one.format.specials}` : ""}`)),
    bitRow(one, which, flip),
    one.parts.map((part) => facts(one, part, link, which)),
    h("details", {}, h("summary", {}, "About the format"), h("p", {}, one.format.text),
      one.format.aliases.length ? h("p", {}, h("span", { class: "soft" }, "also called "), one.format.aliases.join(", ")) : null));
}

/** The bits as buttons, grouped by their fields. */
function bitRow(one, which, flip) {
  let at = 0;
  return h("div", { class: `bits${one.bits.length > 16 ? " many" : one.bits.length > 8 ? " some" : ""}`, role: "group", "aria-label": `Bits of ${one.format.name}; press one to flip it` },
    one.fields.map((field) => {
      const bits = one.bits.slice(at, at + field.bits.length);
      at += field.bits.length;
      return h("div", { class: `bit-field ${field.kind}` },
        h("div", { class: "bit-run" }, bits.map((bit) =>
          h("button", {
            type: "button", class: bit.set ? "bit set" : "bit", "data-key": `${which}-${bit.bit}`, "data-bit": bit.bit,
            "aria-pressed": bit.set ? "true" : "false", "aria-label": `bit ${bit.bit}, ${bit.name}: ${bit.set}`,
            title: `bit ${bit.bit}`, onclick: () => flip(bit.bit),
          }, String(bit.set)))),
        h("div", { class: "bit-name" }, field.name, field.meaning ? h("b", {}, " ", superscripts(field.meaning)) : null));
    }));
}

function facts(one, part, link, which) {
  const result = part.result;
  const to = (entry) => which === "first" && one.parts.length === 1
    ? { code: entry.code, at: "", zoom: "" }
    : { code: "", value: entry.typed, at: "", zoom: "" };
  const neighbour = (name, entry) => [
    h("dt", {}, name),
    h("dd", {}, entry ? link(to(entry), { "data-key": `${which}-${part.label}-${name}` }, h("code", {}, entry.code), ` ${entry.text}`) : h("span", { class: "soft" }, "none")),
  ];
  const row = (name, child, kind) => (child ? [h("dt", {}, name), h("dd", { class: kind ?? null }, child)] : []);
  return h("div", { class: "facts" }, h("div", {},
    part.label ? h("h3", {}, `${part.label} part, ${part.format}`) : null,
    h("p", { class: "result" },
      h("span", { class: result.short.length > 13 ? "value long" : "value", title: result.decimal }, result.short),
      h("span", { class: "badge" }, part.class),
      part.exact ? h("span", { class: "badge good" }, "exact") : part.error
        ? h("span", { class: "badge warn" }, `${signed(part.error)} ulp`) : h("span", { class: "badge warn" }, "out of range"))),
    h("dl", {},
      row("given", part.exact ? null : part.given.short, "long"),
      row("code", h("code", {}, result.code)),
      row("hex float", result.hex ? h("code", {}, result.hex) : null, "long"),
      row("fraction", result.fraction !== result.decimal ? result.fraction : null, "long"),
      row("decimal", result.short !== result.decimal ? result.decimal : null, "long"),
      row("powers", result.powers !== result.decimal ? superscripts(result.powers) : null, "long"),
      row("ulp here", part.finite ? superscripts(part.ulp) : null),
      neighbour("below", part.below), neighbour("above", part.above)));
}

const signed = (text) => (text === "" || text === "0" || text.startsWith("-") ? text : `+${text}`);

function roundings(one, part) {
  const decision = part.decision;
  const chosen = part.result.code;
  const width = one.bits.length / one.parts.length;
  return h("article", { class: `card${width > 16 ? " wide-codes" : width > 8 ? " codes" : ""}`, "aria-label": `Rounding into ${one.format.name}` },
    h("div", { class: "card-head" }, h("h2", {}, "Rounding ", h("span", { class: "soft" }, `into ${part.format}${part.label ? `, ${part.label} part` : ""}`))),
    decision ? h("div", { class: "decision" },
      piece("kept", decision.kept, "significand", `\u00d7 2`, decision.exponent),
      piece("round bit", String(decision.round), "round"),
      piece("sticky", String(decision.sticky), "sticky"),
      piece("dropped", `${decision.dropped} ulp`, "plain"))
      : h("p", { class: "soft" }, part.given.decimal === "0" || part.given.decimal === "-0" ? "Zero: nothing to round." : "Nothing to round."),
    part.finite && table(`Rounding modes into ${part.format}`,
      ["mode", "code", ["bits", "opt"], ["value", "num"], ["error (ulp)", "num"], "why"],
      part.rounding.map((o) => ({
        class: o.code === "" ? "off" : o.code === chosen ? "" : "other",
        cells: [o.name, h("code", {}, o.code || "\u2013"), pattern(o.fields), o.text, signed(o.error), o.why],
      }))),
    part.others.outcomes.length ? [
      h("h3", {}, part.others.about),
      table(part.others.about, ["rule", "code", ["value", "num"], ""],
        part.others.outcomes.map((o) => ({ cells: [o.name, h("code", {}, o.code || "\u2013"), o.text, o.note] }))),
    ] : null);
}

function piece(name, text, kind, times, exponent) {
  return h("div", { class: "piece" }, h("span", { class: "piece-name" }, name),
    h("code", { class: `piece-bits ${kind}` }, text),
    times ? h("span", { class: "soft" }, times, h("sup", {}, String(exponent).replace("-", "\u2212"))) : null);
}
