// Timeline: the attempts that a scheduler recorded; a span of time is chosen in the picture.
import { h, signal } from "../core.js";
import { clock, count, micros, plural, seconds } from "../format.js";
import { cluster, nodeChanges, records, seesPods } from "../store.js";
import { isLive } from "../api.js";
import { go, route, setQuery } from "../router.js";
import { details, empty, hiddenPods, nodeName, plainTable, podName, section, select } from "../widgets.js";
import { timeChart } from "../chart.js";
import { grid } from "../grid.js";

const OUTCOMES = [
  ["scheduled", "#0072b2"],
  ["unschedulable", "#d55e00"],
  ["nominated", "#cc79a7"],
  ["error", "#b0156f"],
];
const COLUMNS = 60;
const EXPORTED = ["seq", "at", "namespace", "pod", "profile", "attempt", "way", "outcome", "tookUs", "evaluated", "feasible", "node", "points", "runnerUp", "margin", "message", "refusedBy", "nominated", "victims", "bind", "bindUs", "permitUs"];

export function timelinePage() {
  const brush = signal(null);
  const query = () => route.value.query;
  const outcome = () => query().get("outcome") || "";
  const text = () => (query().get("q") || "").toLowerCase();
  const filtered = () => records.value.filter((row) => (!outcome() || row.outcome === outcome()) && (!text() || `${row.namespace}/${row.pod} ${row.node}`.toLowerCase().includes(text())));
  const chosen = () => {
    const span = brush.value;
    return filtered().filter((row) => !span || (seconds(row.at) >= span.from && seconds(row.at) <= span.to));
  };
  const points = () => histogram(filtered());
  return h("div", { class: "page" },
    h("h1", { tabindex: -1 }, "Timeline"),
    () => {
      if (records.value.length) return null;
      if (!seesPods()) return hiddenPods();
      const what = isLive.value ? "No attempt was recorded yet. They appear here as the scheduler decides." : "A snapshot is one moment: it has no attempts. Open a running scheduler with `mooring ui URL`.";
      return empty("No attempts", what);
    },
    h("div", { class: "answer", hidden: () => !records.value.length },
      h("div", { class: "toolbar", role: "toolbar", "aria-label": "Filters" },
        () => select("Outcome", [["", "any"], ...OUTCOMES.map(([name]) => [name, name])], outcome(), (value) => setQuery({ outcome: value })),
        h("span", { class: "choose" }, h("label", { for: "timeline-text" }, "Contains"),
          h("input", { id: "timeline-text", type: "search", value: query().get("q") || "", oninput: (event) => setQuery({ q: event.target.value }), spellcheck: "false" })),
        h("button", { type: "button", onclick: () => save(chosen()) }, "Export CSV"),
        h("button", { type: "button", hidden: () => !brush.value, onclick: () => (brush.value = null) }, "All times")),
      section("Attempts over time",
        timeChart({ label: "Attempts over time by outcome; arrows choose a span, shift and arrows change its length, Escape ends it", series: OUTCOMES.map(([name, color]) => ({ name, color })), points, brush, bars: true }),
        details("As a table", () => plainTable("Attempts over time", ["from", ...OUTCOMES.map((one) => one[0])], points().filter((one) => one.values.some(Boolean)).map((one) => [clock(one.at * 1000), ...one.values.map(count)]), [1, 2, 3, 4]))),
      h("section", { class: "card" },
        h("p", { class: "note" }, () => `${plural(chosen().length, "attempt")}. Enter explains the pod${cluster.peek().scheduler.explainsPast ? " as it was at the attempt" : ", as it is now"}.`),
        grid({
          label: "Attempts",
          columns: [
            { title: "time", width: "6rem", cell: (row) => clock(row.at), sort: (row) => row.seq },
            { title: "pod", width: "minmax(10rem, 2fr)", cell: (row) => podName(`${row.namespace}/${row.pod}`, { at: String(row.seq) }), sort: (row) => `${row.namespace}/${row.pod}` },
            { title: "outcome", width: "8rem", cell: (row) => row.outcome + (row.bind && row.bind !== "ok" ? `, bind ${row.bind}` : ""), sort: (row) => row.outcome },
            { title: "took", width: "6rem", numeric: true, cell: (row) => micros(row.tookUs), sort: (row) => row.tookUs },
            { title: "feasible", width: "7rem", numeric: true, cell: (row) => `${count(row.feasible)} of ${count(row.evaluated)}`, sort: (row) => row.feasible },
            { title: "node", width: "minmax(8rem, 1.4fr)", cell: (row) => h("bdi", null, row.node || row.nominated || "–"), sort: (row) => row.node },
            { title: "margin", width: "5rem", numeric: true, cell: (row) => (row.margin === null || row.margin === undefined ? "–" : count(row.margin)), sort: (row) => row.margin ?? -1 },
            { title: "refused by", width: "minmax(8rem, 1.6fr)", cell: (row) => row.refusedBy.join(", "), sort: (row) => row.refusedBy.join() },
          ],
          rows: chosen,
          opened: (row) => go("pods", [row.namespace, row.pod], { at: String(row.seq) }),
          most: 14,
          empty: "No attempt matches.",
        }))),
    () => isLive.value && section("Changes of nodes", changesOfNodes(nodeChanges.value)));
}

function changesOfNodes(changes) {
  if (!changes.length) return h("p", { class: "note" }, "No node came, went, was cordoned or changed its readiness since this page was opened.");
  return plainTable("Changes of nodes since this page was opened", ["time", "node", "what"], changes.slice(0, 50).map((one) => [clock(one.at), nodeName(one.node), one.what]));
}

function histogram(rows) {
  if (!rows.length) return [];
  const times = rows.map((row) => seconds(row.at));
  const from = Math.min(...times);
  const step = Math.max((Math.max(...times) - from) / (COLUMNS - 1), 0.001);
  const points = Array.from({ length: COLUMNS }, (_, at) => ({ at: from + at * step, values: OUTCOMES.map(() => 0) }));
  rows.forEach((row, at) => {
    const outcome = OUTCOMES.findIndex(([name]) => name === row.outcome);
    if (outcome >= 0) points[Math.min(COLUMNS - 1, Math.floor((times[at] - from) / step))].values[outcome] += 1;
  });
  return points;
}

function save(rows) {
  const quoted = (value) => {
    const text = Array.isArray(value) ? value.join("; ") : String(value ?? "");
    const safe = /^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text; // no formula
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = [EXPORTED.join(","), ...rows.map((row) => EXPORTED.map((key) => quoted(row[key])).join(","))];
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  const target = h("a", { href: url, download: "attempts.csv" });
  target.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
