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

  // Plots: figures are stored as data; colours follow the page, in light and dark mode.
  const source = document.getElementById("plot-data");
  if (!source || typeof Plotly === "undefined") return;
  const figures = JSON.parse(source.textContent);
  const look = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const paint = (value) => {
    if (typeof value === "string") return /^@[0-7]$/.test(value) ? look(`--c${value[1]}`) : /^@[a-z]+$/.test(value) ? look(`--${value.slice(1)}`) : value;
    if (Array.isArray(value)) return value.map(paint);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, paint(one)]));
    return value;
  };
  const merge = (base, more) => {
    const result = { ...base };
    for (const [name, value] of Object.entries(more)) {
      const nested = value && typeof value === "object" && !Array.isArray(value) && result[name];
      result[name] = nested ? merge(result[name], value) : value;
    }
    return result;
  };
  const touch = matchMedia("(pointer: coarse)").matches;
  const layoutOf = (figure) => {
    const axis = {
      automargin: true, gridcolor: look("--grid"), zerolinecolor: look("--line"), linecolor: look("--line"),
      tickcolor: look("--line"), title: { standoff: 10 },
    };
    const base = {
      autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: touch ? false : "zoom",
      font: { family: look("--sans"), size: 12, color: look("--text") }, margin: { l: 10, r: 10, t: 12, b: 10 },
      xaxis: axis, yaxis: axis, hovermode: "closest", showlegend: false,
      legend: { orientation: "h", y: -0.18, yanchor: "top", x: 0, font: { size: 11 } },
      hoverlabel: { bgcolor: look("--raised"), bordercolor: look("--line"), font: { color: look("--text"), family: look("--sans"), size: 12 }, align: "left" },
      colorway: [0, 1, 2, 3, 4, 5, 6, 7].map((n) => look(`--c${n}`)),
    };
    return merge(base, paint(figure.layout || {}));
  };
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], displayModeBar: touch ? false : "hover" };
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const draw = async () => {
    const scheme = dark.matches ? "dark" : "light";
    await Promise.all(figures.map((figure, number) =>
      Plotly.react(`plot-${number}`, paint(figure.data), layoutOf(figure), config)));
    document.documentElement.dataset.drawn = scheme;
  };
  draw();
  for (const when of [dark, matchMedia("print")]) when.addEventListener("change", draw);
})();
