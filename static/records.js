// Keys of the window of records: j and k or the arrows go through the rows, Enter opens one, Escape closes the record
// and then the window. Comforts only: every row is a link.

const ROWS = "#records .list tbody .lead a";

function rows() {
  return [...document.querySelectorAll(ROWS)];
}

/** The row that has the focus, else the one whose record is open; -1 without either. */
function current(links) {
  const focused = links.indexOf(document.activeElement);
  return focused >= 0 ? focused : links.findIndex((link) => link.hasAttribute("aria-current"));
}

/** Goes to the next row in a direction; while a record is open, the next one's is opened. */
function step(by) {
  const links = rows();
  const to = current(links) + by;
  const link = links[current(links) < 0 ? 0 : to];
  if (!link) {
    return;
  }

  link.focus();
  link.scrollIntoView({ block: "nearest" });
  if (document.querySelector("#records .has-record")) {
    link.click();
  }
}

const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function onRecordsKey(event) {
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea, pre, summary");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in STEPS) || !rows().length) {
    return;
  }

  event.preventDefault();
  step(STEPS[event.key]);
}

/** A new window has no focus yet: it goes to the row whose record is open. */
function keepPlace() {
  const open = document.querySelector(`${ROWS}[aria-current]`);
  if (open && !document.activeElement.matches("input, select, textarea")) {
    open.focus({ preventScroll: true });
    open.scrollIntoView({ block: "nearest" });
  }
}

/** Copy buttons show only where this file runs. */
function showCopies() {
  for (const button of document.querySelectorAll("[data-copy][hidden]")) {
    button.hidden = false;
  }
}

async function copy(event) {
  const button = event.target.closest("[data-copy]");
  if (!button) {
    return;
  }

  const source = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source); // without leave for the clipboard: one key copies it
    button.textContent = "Selected";
  }
}

function onShown() {
  keepPlace();
  showCopies();
}

document.addEventListener("keydown", onRecordsKey);
document.addEventListener("click", copy);
document.addEventListener("htmx:afterSettle", onShown);
onShown(); // a row that is opened before htmx knows its link is a page of its own
