// Comforts only: every page works without this file.

/** A filter is applied as soon as it is chosen. */
function submitChoice(event) {
  if (event.target.matches("select[data-submit]")) {
    event.target.form.requestSubmit();
  }
}

/** `/` goes to the nearest search box. */
function goToSearch(event) {
  const field = document.querySelector("#records-q") || document.querySelector(".bar input[type=search]");
  if (!field) {
    return;
  }

  event.preventDefault();
  field.focus();
  field.select();
}

/** Escape closes the open menu, else the open record, else the window; a search box with text it only empties. */
function closeNearest(event) {
  const menu = document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }

  const close = document.querySelector("[data-close-record]") || document.querySelector("[data-close]");
  if (close && !(isTyping(event) && event.target.value)) {
    close.click();
  }
}

function isTyping(event) {
  return event.target.matches("input, select, textarea");
}

function onKey(event) {
  if (event.key === "/" && !isTyping(event)) {
    goToSearch(event);
  } else if (event.key === "Escape") {
    closeNearest(event);
  }
}

/** A click beside an open menu closes it. */
function closeMenusBeside(event) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) {
      menu.open = false;
    }
  }
}

/** Find goes on by itself; what it finds stands newest first. */
function sortFound() {
  const body = document.querySelector("#found");
  if (!body) {
    return;
  }

  const rows = [...body.rows].sort((a, b) => b.dataset.at.localeCompare(a.dataset.at));
  body.replaceChildren(...rows);
}

/** What refreshes itself rests while nobody sees it. */
function restUnseen(event) {
  if (document.visibilityState !== "visible" && event.target.matches('[hx-trigger^="every"]')) {
    event.preventDefault();
  }
}

document.addEventListener("change", submitChoice);
document.addEventListener("keydown", onKey);
document.addEventListener("click", closeMenusBeside);
document.addEventListener("htmx:beforeRequest", restUnseen);
document.addEventListener("htmx:afterSettle", sortFound);
