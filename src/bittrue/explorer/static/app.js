// The page's state is its address: views read it, change it, and are drawn anew from it.

import { drawBlock } from "./block.js";
import { complain, forgive, h } from "./dom.js";
import { drawFixpipe } from "./fixpipe.js";
import { drawMap } from "./map.js";
import { drawNumber } from "./number.js";
import { drawRule } from "./rule.js";

const defaults = { view: "number", ...JSON.parse(document.getElementById("defaults").content.textContent) };

/** Views: each draws itself and returns a title (null: overtaken by a newer state); fields whose ids differ. */
const VIEWS = {
  number: { draw: drawNumber },
  map: { draw: drawMap, names: { format: "map-format" } },
  block: { draw: drawBlock },
  fixpipe: { draw: drawFixpipe, names: { product: "npu", shift: "wshift" } },
  rule: { draw: drawRule, names: { value: "x" }, forgives: true },
};

/** Everything that the address says; what it does not say is a default. */
const read = () => Object.fromEntries(new URLSearchParams(location.search));

let state = read();

/** A field of the state, or its default. */
function get(name) {
  if (name === "value" && state.code) return "";
  return state[name] ?? defaults[name] ?? "";
}

/**
 * Change the state, and with it the address and the drawing.
 * @param {object} changes texts by name; "" removes one that has no default
 * @param {boolean} keep replace the entry of the history (while typing) instead of adding one
 */
function set(changes, keep = false) {
  state = changed(changes);
  const address = href({});
  if (address !== location.pathname + location.search) history[keep ? "replaceState" : "pushState"](null, "", address);
  return show();
}

function changed(changes) {
  const next = { ...state };
  for (const [name, text] of Object.entries(changes)) {
    if (text === undefined || (text === "" && defaults[name] === undefined) || text === defaults[name]) delete next[name];
    else next[name] = text;
  }
  if (next.code) delete next.value;
  return next;
}

/** The address of the state with some changes. */
function href(changes) {
  const query = new URLSearchParams(changed(changes)).toString();
  return location.pathname + (query ? `?${query}` : "");
}

/** A link to the state with some changes; followed without loading the page. */
function link(changes, properties, ...children) {
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    set(changes);
  };
  return h("a", { href: href(changes), onclick: follow, ...properties }, ...children);
}

let turn = 0;

/** Draw the view that the state names. */
async function show() {
  const name = Object.hasOwn(VIEWS, get("view")) ? get("view") : "number";
  const view = document.querySelector(`section[data-view="${name}"]`);
  for (const each of document.querySelectorAll("section[data-view]")) each.hidden = each !== view;
  for (const tab of document.querySelectorAll("nav a")) {
    if (tab.dataset.view === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    tab.href = href({ view: tab.dataset.view });
  }
  showTheme();
  const mine = ++turn;
  try {
    const title = await VIEWS[name].draw({ get, set, link, view });
    if (mine !== turn || !title) return;
    document.title = `${title} - bittrue explorer`;
    if (!VIEWS[name].forgives) forgive(view);
    view.classList.remove("stale");
  } catch (error) {
    if (mine !== turn) return;
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
  paint();
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

for (const tab of document.querySelectorAll("nav a")) {
  tab.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    set({ view: tab.dataset.view });
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
