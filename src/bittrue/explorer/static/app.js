// The page's state is its address: views read it, change it, and are drawn anew from it.

import { drawBlock } from "./block.js";
import { forgive, complain } from "./dom.js";
import { drawFixpipe } from "./fixpipe.js";
import { drawMap } from "./map.js";
import { drawNumber } from "./number.js";
import { drawRule } from "./rule.js";

const defaults = { view: "number", ...JSON.parse(document.getElementById("defaults").content.textContent) };

const VIEWS = {
  number: { title: "Number", draw: drawNumber },
  map: { title: "All codes", draw: drawMap, names: { format: "map-format" } },
  block: { title: "Blocks", draw: drawBlock },
  fixpipe: { title: "Fixpipe", draw: drawFixpipe, names: { product: "npu", shift: "wshift" } },
  rule: { title: "Rules", draw: drawRule, names: { value: "x" } },
};

/** Everything that the address says; what it does not say is a default. */
function read() {
  return { ...Object.fromEntries(new URLSearchParams(location.search)) };
}

let state = read();

/** A field of the state, or its default. */
function get(name) {
  if (name === "value" && state.code) return "";
  return state[name] ?? defaults[name] ?? "";
}

/**
 * Change the state, and with it the address and the drawing.
 * @param {object} changes texts by name; "" or undefined removes one
 * @param {boolean} keep replace the entry of the history (while typing) instead of adding one
 */
function set(changes, keep = false) {
  for (const [name, text] of Object.entries(changes)) {
    if (text === undefined || text === null || (text === "" && defaults[name] === undefined) || text === defaults[name]) delete state[name];
    else state[name] = text;
  }
  if (state.code) delete state.value;
  const query = new URLSearchParams(state).toString();
  const address = `${location.pathname}${query ? `?${query}` : ""}`;
  if (address !== location.pathname + location.search) history[keep ? "replaceState" : "pushState"](null, "", address);
  return show();
}

let turn = 0;

/** Draw the view that the state names. */
async function show() {
  const name = VIEWS[get("view")] ? get("view") : "number";
  const view = document.querySelector(`section[data-view="${name}"]`);
  for (const each of document.querySelectorAll("section[data-view]")) each.hidden = each !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = `?${new URLSearchParams({ ...state, view: link.dataset.view })}`;
  }
  document.title = `${VIEWS[name].title} - bittrue explorer`;
  showTheme();
  const mine = ++turn;
  try {
    const done = await VIEWS[name].draw({ get, set, view });
    if (mine === turn && done) forgive(view);
    if (mine === turn) view.classList.remove("stale");
  } catch (error) {
    if (mine !== turn) return;
    if (error instanceof ReferenceError || error instanceof RangeError) throw error;
    forgive(view);
    complain(view, error, VIEWS[name].names);
    view.classList.add("stale");
  } finally {
    if (mine === turn) {
      performance.mark("drawn"); // for `bittrue bench`
      document.body.dataset.ready = String(turn);
    }
  }
}

// --- the frame -------------------------------------------------------------------------------------------------------

const THEMES = { auto: ["Auto", "as the system has them"], light: ["Light", "light"], dark: ["Dark", "dark"] };

function showTheme() {
  const theme = state.theme === "light" || state.theme === "dark" ? state.theme : "auto";
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = THEMES[theme][0];
  button.setAttribute("aria-label", `${THEMES[theme][0]}: the colours are ${THEMES[theme][1]}`);
}

document.getElementById("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(state.theme ?? "auto") + 1) % names.length];
  set({ theme: next === "auto" ? "" : next }, true);
});

document.getElementById("copy").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = "See the address bar";
  }
  setTimeout(() => (button.textContent = "Copy link"), 1600);
});

for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    set({ view: link.dataset.view });
  });
}
for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("popstate", () => {
  state = read();
  document.activeElement?.blur?.();
  show();
});

// --- fields ----------------------------------------------------------------------------------------------------------

/** What typing into a field changes; fields that are not named here change the state of their own name. */
const CHANGES = {
  format: (text) => ({ format: text, at: "", zoom: "" }),
  value: (text) => ({ value: text, code: "", at: "", zoom: "" }),
  code: (text) => ({ code: text, value: text ? "" : get("value"), at: "", zoom: "" }),
  "map-format": (text) => ({ format: text, code: "", at: "", zoom: "" }),
  block: (text) => ({ block: text, rounding: "", overflow: "", scale_rule: "", nonfinite: "" }),
  relu: (_, field) => ({ relu: field.checked ? "1" : "" }),
};

/** Fields that the Fixpipe view turns into a new word. */
const WORD_FIELDS = ["scale", "offset", "wshift", "signed"];

let timer;
for (const field of document.querySelectorAll("input, textarea, select")) {
  if (WORD_FIELDS.includes(field.id)) continue;
  const change = () => (CHANGES[field.id] ?? ((text) => ({ [field.id]: text })))(field.value.trim(), field);
  const typed = field.matches("textarea, input:not([type=checkbox])");
  if (typed) {
    let before = null;
    field.addEventListener("focus", () => (before = null));
    field.addEventListener("input", () => {
      clearTimeout(timer);
      // the first keystroke adds an entry to the history, the others replace it
      timer = setTimeout(() => {
        set(change(), before !== null);
        before = field.value;
      }, 60);
    });
  } else {
    field.addEventListener("change", () => set(change()));
  }
}

await show();
