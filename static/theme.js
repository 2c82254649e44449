// Light or dark, where the reader chose one: read before anything is painted. Without this file the system says.

const THEMES = ["", "light", "dark"];
const THEME_NAMES = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function chosenTheme() {
  const kept = localStorage.getItem("theme");
  return THEMES.includes(kept) ? kept : "";
}

function showTheme() {
  const theme = chosenTheme();
  document.documentElement.dataset.theme = theme;

  const button = document.querySelector("#theme");
  if (button) {
    button.hidden = false;
    button.textContent = THEME_NAMES[theme];
  }
}

function nextTheme(event) {
  if (!event.target.matches("#theme")) {
    return;
  }

  const next = THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length];
  localStorage.setItem("theme", next);
  showTheme();
}

showTheme();
document.addEventListener("DOMContentLoaded", showTheme);
document.addEventListener("click", nextTheme);
