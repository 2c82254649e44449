// Moments in the reader's zone, which is named; UTC stays on a touch. Without this file every moment is UTC.

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function two(number) {
  return String(number).padStart(2, "0");
}

function hour(at) {
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

function day(at) {
  return `${at.getDate()} ${MONTHS[at.getMonth()]}`;
}

/** The forms of ondatra_web/templatetags/ondatra.py. */
const FORMS = {
  moment(at) {
    const now = new Date();
    if (at.toDateString() === now.toDateString()) {
      return hour(at);
    }

    const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
    return `${day(at)}${year}, ${hour(at)}`;
  },

  clock(at) {
    return `${hour(at)}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
  },

  day,
};

function write(time) {
  const at = new Date(time.dateTime);
  const form = FORMS[time.dataset.as];
  if (form) {
    time.textContent = form(at);
  }

  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  time.title = `${date} ${hour(at)}:${two(at.getSeconds())} ${ZONE} · ${time.title}`;
  time.dataset.zone = ZONE;
}

function writeAll() {
  document.querySelectorAll("time[data-as]:not([data-zone])").forEach(write);
  for (const name of document.querySelectorAll(".zone")) {
    name.textContent = ZONE;
  }
}

if (ZONE && ZONE !== "UTC") {
  writeAll();
  document.addEventListener("htmx:load", writeAll);
}
