// Comforts only: every page works without this file.
document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) {
    const field = document.querySelector("#records-q") || document.querySelector(".bar input[type=search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
  if (event.key === "Escape") {
    const menu = document.querySelector("details.menu[open]");
    const close = document.querySelector("[data-close]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
    else if (close && !(typing && event.target.value)) close.click();
  }
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
