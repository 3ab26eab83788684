
"use strict";
// Heads of tables become buttons: the first press sorts numbers from the largest on and names from the first on.
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("number");
      const now = head.getAttribute("aria-sort");
      const order = now ? (now === "ascending" ? "descending" : "ascending") : isNumber ? "descending" : "ascending";
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => {
        const cell = row.cells[column];
        return isNumber ? (cell.dataset.value === undefined ? NaN : Number(cell.dataset.value)) : cell.textContent;
      };
      const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        if (!isNumber) return sign * a.localeCompare(b, "en", { numeric: true });
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return sign * (a - b);
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
    });
  });
}

// A link or router that is chosen fails: what that does was worked out before.
const chooser = document.querySelector("#failing");
if (chooser) {
  const failures = JSON.parse(document.querySelector("#failing-data").textContent);
  const picture = document.querySelector("#mesh-picture svg");
  const said = document.querySelector("#failing-said");
  const elements = [...picture.querySelectorAll("[data-place]")];
  const show = () => {
    const place = Number(chooser.value);
    const [words, links] = place < 0 ? ["", ""] : failures[place];
    picture.classList.toggle("failing", place >= 0);
    said.textContent = words;
    elements.forEach((element, at) => {
      element.dataset.state = links[at] ?? (at === place ? "x" : "");
    });
  };
  chooser.addEventListener("change", show);
  for (const element of elements) {
    element.addEventListener("click", () => {
      const place = element.dataset.place;
      chooser.value = chooser.value === place ? "-1" : place;
      show();
    });
  }
  show();
}
