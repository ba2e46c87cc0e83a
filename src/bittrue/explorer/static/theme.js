// Colours before the first paint: the address says light or dark, else the system decides.
{
  const asked = new URLSearchParams(location.search).get("theme");
  if (asked === "light" || asked === "dark") document.documentElement.dataset.theme = asked;
}
