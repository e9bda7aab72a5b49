// The report's own script: the timeline's rows, which uPlot has no notion of, search, pinning, exports and sorting.
// Axes, curves, selecting a time with the mouse, and the cursor that all charts share are uPlot's.
"use strict";
const parsed = id => JSON.parse(document.getElementById(id).textContent);
const at = id => document.getElementById(id);

const TIME_UNITS = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"], [0, "ps"]];
function timeText(us, digits = 6) {
  if (Math.abs(us) < 1e-9) return "0";
  const [size, unit] = TIME_UNITS.find(([size]) => Math.abs(us) >= size * (1 - 1e-9));
  return Number((us / (size || 1e-6)).toPrecision(digits)) + " " + unit;
}
const SIZE_UNITS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [0, "B"]];
function sizeText(bytes) {
  const [size, unit] = SIZE_UNITS.find(([size]) => bytes >= size);
  return Number((bytes / (size || 1)).toPrecision(4)) + " " + unit;
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A click on the head of a column sorts its table, another one the other way round.
function sortable(table) {
  const body = table.tBodies[0];
  for (const [i, head] of [...table.tHead.rows[0].cells].entries()) {
    if (!head.textContent.trim()) continue;
    const value = row => { const v = row.cells[i].dataset.v; return v === undefined ? row.cells[i].textContent : Number(v); };
    const sort = () => {
      const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const rows = [...body.rows].map((row, place) => [value(row), place, row]);
      rows.sort(([a, m], [b, n]) => (a < b ? -sign : a > b ? sign : m - n));
      body.append(...rows.map(([, , row]) => row));
    };
    head.tabIndex = 0;
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
  }
}

async function begin() {
  for (const table of document.querySelectorAll("table")) sortable(table);
  if (!at("data")) return;
  const data = parsed("data"), about = parsed("collectives");
  const bars = new Bars(data, await unpacked(data.columns), about), timeline = new Timeline(data, bars);
  for (const row of document.querySelectorAll("tr[data-c]")) {
    row.addEventListener("click", () => {
      const call = Number(row.dataset.c), k = bars.calls.indexOf(call);
      if (k >= 0) { at("rows").scrollIntoView({ block: "center" }); timeline.reveal(k); }
    });
  }
  document.documentElement.dataset.ready = "";
}
begin();
