// Tables that can be sorted and filtered.
"use strict";
for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const isNumber = head.classList.contains("n");
      const down = before ? before === "ascending" : isNumber;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column], text = cell.dataset.v ?? cell.textContent;
        return isNumber ? (text === "" || text === "-" ? NaN : Number(text)) : text;
      };
      const sign = down ? -1 : 1;
      const rows = [...body.rows].map((row) => [value(row), row]);
      rows.sort(([a], [b]) => {
        if (!isNumber) return sign * a.localeCompare(b);
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return sign * (a - b);
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
  const filter = document.querySelector(`input[data-for="${table.id}"]`);
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
}
