// Colours, from before the first paint on: the address says light or dark, else the system decides.
const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const asked = new URLSearchParams(location.search).get("theme");
  const named = asked === "light" || asked === "dark";
  document.documentElement.dataset.theme = named ? asked : dark.matches ? "dark" : "light";
}

paint();
dark.addEventListener("change", paint);
