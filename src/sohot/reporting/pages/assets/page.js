"use strict";
(() => {
  // Tables: a click, or Enter on a heading, sorts; numbers by value, missing entries last.
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const keyOf = (cell) => {
    if (!cell) return { missing: true };
    if (cell.dataset.value === undefined) return { text: cell.textContent.trim(), missing: cell.textContent.trim() === "" };
    return { value: Number(cell.dataset.value), missing: cell.dataset.value === "" };
  };
  const compare = (a, b) => ("value" in a && "value" in b ? a.value - b.value : collator.compare(a.text ?? a.value, b.text ?? b.value));
  for (const table of document.querySelectorAll("table.sorts")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const numbers = head.classList.contains("number");
        const before = head.getAttribute("aria-sort");
        const descending = before ? before === "ascending" : numbers; // numbers from the largest, words from A
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => ({ row, key: keyOf(row.cells[column]) }));
        rows.sort((a, b) => {
          if (a.key.missing || b.key.missing) return Number(a.key.missing) - Number(b.key.missing);
          return descending ? compare(b.key, a.key) : compare(a.key, b.key);
        });
        body.append(...rows.map(({ row }) => row));
      });
    });
  }
})();
