// A table of any length: only the rows that are visible exist. Sorted by its headings, moved in by keys.
import { h, append, effect, signal } from "./core.js";
import { compareNames } from "./format.js";

const ROW = 32; // pixels, as in the style sheet
const SPARE = 6; // rows above and below
let grids = 0;

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return compareNames(String(one ?? ""), String(other ?? ""));
}

/** Below this width a table scrolls sideways. */
function narrowest(columns) {
  const widths = columns.map((one) => Number(/([\d.]+)rem/.exec(one.width || "6rem")[1]));
  return widths.reduce((sum, one) => sum + one + 1.6, 0);
}

/**
 * columns: [{title, width, cell(row), sort(row)?, numeric?, down?}]; `down`: the most comes first; rows: a function that reads signals.
 * opened(row) is called by Enter or a click; `most` is the number of visible rows.
 */
export function grid({ label, columns, rows, opened = null, most = 16, empty = "Nothing here.", sorted = null }) {
  const id = `grid-${++grids}`;
  const order = signal(sorted); // {column, down}
  let shown = [];
  let cursor = -1;
  const lines = new Map(); // by their place, those that exist

  const template = columns.map((one) => one.width || "minmax(0, 1fr)").join(" ");
  const head = h("div", { class: "grid-row grid-head", role: "row", "aria-rowindex": 1, style: { "grid-template-columns": template } },
    columns.map((column, at) => heading(column, at)));
  const spacer = h("div", { class: "grid-space", role: "presentation" });
  const body = h("div", { class: "grid-body", role: "rowgroup", tabindex: 0, "aria-label": `${label}: rows` }, spacer);
  const nothing = h("p", { class: "empty" }, empty);
  const element = h("div", { class: "grid", role: "grid", id, "aria-label": label, "aria-colcount": columns.length },
    h("div", { class: "grid-inner", role: "presentation", style: { "min-width": `${narrowest(columns)}rem` } },
      h("div", { role: "rowgroup", class: "grid-top" }, head), body), nothing);

  function heading(column, at) {
    const sort = () => {
      const now = order.peek();
      order.value = { column: at, down: now && now.column === at ? !now.down : Boolean(column.numeric || column.down) };
    };
    const title = column.sort
      ? h("button", { type: "button", class: "plain", onclick: sort }, column.title,
        h("span", { class: "arrow", "aria-hidden": "true" }, () => (order.value?.column === at ? (order.value.down ? " ↓" : " ↑") : "")))
      : column.title;
    return h("div", {
      role: "columnheader",
      class: column.numeric ? "number" : "",
      "aria-sort": () => (order.value?.column === at ? (order.value.down ? "descending" : "ascending") : null),
    }, title);
  }

  function draw() {
    const first = Math.max(0, Math.floor(body.scrollTop / ROW) - SPARE);
    const last = Math.min(shown.length, first + Math.ceil((body.clientHeight || most * ROW) / ROW) + 2 * SPARE);
    for (const [at, element] of lines) {
      if (at >= first && at < last) continue;
      element.remove();
      lines.delete(at);
    }
    for (let at = first; at < last; at++) {
      if (lines.has(at)) continue;
      lines.set(at, line(at));
      spacer.append(lines.get(at));
    }
    mark();
    if (cursor >= first && cursor < last) body.setAttribute("aria-activedescendant", `${id}-${cursor}`);
    else body.removeAttribute("aria-activedescendant");
  }

  /** Only the row of the cursor is marked. */
  function mark() {
    for (const [at, element] of lines) {
      element.classList.toggle("at", at === cursor);
      if (at === cursor) element.setAttribute("aria-selected", "true");
      else element.removeAttribute("aria-selected");
    }
  }

  function line(at) {
    const row = shown[at];
    const element = document.createElement("div");
    element.className = "grid-row";
    element.id = `${id}-${at}`;
    element.setAttribute("role", "row");
    element.setAttribute("aria-rowindex", String(at + 2));
    element.style.gridTemplateColumns = template;
    element.style.top = `${at * ROW}px`;
    for (const column of columns) {
      const cell = document.createElement("div");
      cell.setAttribute("role", "gridcell");
      if (column.numeric) cell.className = "number";
      const content = column.cell(row);
      append(cell, content);
      if (typeof content === "string") cell.title = content;
      element.append(cell);
    }
    return element;
  }

  function moveTo(at) {
    if (!shown.length) return;
    cursor = Math.min(Math.max(at, 0), shown.length - 1);
    const top = cursor * ROW;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + ROW > body.scrollTop + body.clientHeight) body.scrollTop = top + ROW - body.clientHeight;
    draw();
  }

  body.addEventListener("scroll", draw, { passive: true });
  body.addEventListener("focus", () => cursor < 0 && moveTo(0));
  body.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(body.clientHeight / ROW) - 1);
    const to = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, PageDown: cursor + page, PageUp: cursor - page, Home: 0, End: shown.length - 1 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in to) moveTo(to[event.key]);
    else if (event.key === "Enter" && event.target === body && opened && shown[cursor]) opened(shown[cursor]);
    else return;
    event.preventDefault();
  });
  body.addEventListener("click", (event) => {
    const hit = event.target.closest(".grid-row");
    if (!hit || event.target.closest("a, button")) return;
    moveTo(Number(hit.id.slice(id.length + 1)));
    if (opened) opened(shown[cursor]);
  });

  effect(() => {
    const all = rows();
    const by = order.value;
    shown = all;
    if (by && columns[by.column].sort) {
      const value = columns[by.column].sort;
      const keyed = all.map((row, at) => [value(row), at, row]);
      keyed.sort((one, other) => (by.down ? compare(other[0], one[0]) : compare(one[0], other[0])) || one[1] - other[1]);
      shown = keyed.map((one) => one[2]);
    }
    element.setAttribute("aria-rowcount", String(shown.length + 1));
    element.classList.toggle("nothing", !shown.length);
    if (opened) element.classList.add("opens");
    spacer.style.height = `${shown.length * ROW}px`;
    body.style.height = `${Math.min(shown.length, most) * ROW}px`;
    if (cursor >= shown.length) cursor = -1;
    lines.clear();
    spacer.replaceChildren();
    draw();
  });
  return element;
}
