// Nodes: the map, its table, and one node in detail.
import { effect, h, onEnd, signal } from "../core.js";
import { amounts, compareNames, count, labelTitle, percent, plural } from "../format.js";
import { get, podPath } from "../api.js";
import { cluster, nodesVersion, onRows, queue, resource, rowOf, seesAll } from "../store.js";
import { go, route, setQuery } from "../router.js";
import { badge, bar, failed, plainTable, podName, select, working } from "../widgets.js";
import { grid } from "../grid.js";
import { groupings, nodeMap, nodeTitle, PODS, verdictOf, ZONE } from "../nodemap.js";

const VERDICT = "verdict";

export function nodesPage() {
  const query = () => route.value.query;
  const by = () => query().get("by") || "cpu";
  const pod = () => query().get("pod") || "";
  const group = () => query().get("group") ?? ZONE;
  const verdict = signal(null);
  const verdictProblem = signal(null);

  effect(() => {
    const key = pod();
    verdict.value = null;
    verdictProblem.value = null;
    if (!key || by() !== VERDICT) return;
    const state = cluster.value;
    get(podPath(key, "?depth=matrix")).then(
      (found) => {
        verdict.value = found.matrix ? verdictOf(state, found.matrix) : null;
      },
      (error) => {
        verdictProblem.value = error;
      },
    );
  });

  const readout = h("p", { class: "readout", id: "node-readout" }, " ");
  const { map, legend } = nodeMap({
    label: "Heat map of nodes; arrows move, Enter opens a node, plus and minus zoom",
    choice: () => ({ by: by(), group: group(), verdict: by() === VERDICT ? verdict.value : null }),
    opened: (row) => setQuery({ node: cluster.peek().nodes.names[row] }),
    looked: (row) => {
      readout.textContent = row < 0 ? " " : map.describe(row);
    },
  });
  map.id = "node-map";
  const isTable = () => query().get("view") === "table";
  const table = h("div", null, () => isTable() && nodeTable(by, verdict));
  const picture = h("div", { hidden: isTable }, map, readout, legend);

  return h("div", { class: "page" },
    h("h1", { tabindex: -1 }, "Nodes"),
    h("div", { class: "toolbar", role: "toolbar", "aria-label": "What the map shows" },
      () => select("Group by", [["", "nothing"], ...groupings(cluster.value).map((key) => [key, labelTitle(key)])], group(), (value) => setQuery({ group: value || "-" })),
      () => select("Colour by", [...cluster.value.nodes.resources.map((one) => [one.name, one.name]), ...(seesAll() ? [[VERDICT, "verdict on a pod"]] : [])], by(), (value) => setQuery({ by: value })),
      () => by() === VERDICT && podChooser(pod()),
      h("span", { class: "buttons", role: "group", "aria-label": "View" },
        h("button", { type: "button", "aria-pressed": () => String(!isTable()), onclick: () => setQuery({ view: "" }) }, "Map"),
        h("button", { type: "button", "aria-pressed": () => String(isTable()), onclick: () => setQuery({ view: "table" }) }, "Table")),
      h("span", { class: "buttons", role: "group", "aria-label": "Zoom", hidden: isTable },
        h("button", { type: "button", "aria-label": "Zoom out", onclick: () => map.zoomBy(1 / 1.5) }, "−"),
        h("button", { type: "button", "aria-label": "Fit", onclick: () => map.zoomBy(0) }, "Fit"),
        h("button", { type: "button", "aria-label": "Zoom in: large cells show their pods", onclick: () => map.zoomBy(1.5) }, "+"))),
    () => verdictProblem.value && failed(verdictProblem.value),
    h("div", { class: () => (query().get("node") ? "columns with-panel" : "columns") },
      h("div", { class: "wide card" }, picture, table),
      () => {
        const name = query().get("node");
        return name ? nodePanel(name, map) : null;
      }));
}

function podChooser(current) {
  const names = (queue.value?.pods || []).slice(0, 200).map((one) => `${one.namespace}/${one.name}`);
  const list = h("datalist", { id: "waiting-pods" }, names.map((one) => h("option", { value: one })));
  const chosen = (event) => setQuery({ pod: event.target.value.trim() });
  return h("span", { class: "choose" }, h("label", { for: "chosen-pod" }, "Pod"),
    h("input", { id: "chosen-pod", list: "waiting-pods", placeholder: "namespace/name", value: current, onchange: chosen, spellcheck: "false", autocomplete: "off" }), list);
}

function nodeTable(by, verdict) {
  const state = cluster.value;
  const shown = by();
  const resources = state.nodes.resources.filter((one) => one.name !== PODS && one.allocatable.some(Boolean)).slice(0, 4);
  const zones = state.nodes.labels.find((one) => one.key === ZONE);
  const columns = [
    { title: "node", width: "minmax(9rem, 2fr)", cell: (row) => h("bdi", null, nodeTitle(state, row)), sort: (row) => nodeTitle(state, row) },
    zones && { title: "zone", width: "minmax(4rem, 1fr)", cell: (row) => zones.values[zones.codes[row]] ?? "", sort: (row) => zones.values[zones.codes[row]] ?? "" },
    ...resources.map((one) => ({
      title: one.name,
      width: "minmax(8rem, 1.4fr)",
      down: true,
      cell: (row) => bar(one.allocatable[row] ? one.requested[row] / one.allocatable[row] : 0, one.allocatable[row] ? undefined : "–"),
      sort: (row) => (one.allocatable[row] ? one.requested[row] / one.allocatable[row] : -1),
    })),
    { title: "pods", width: "5rem", numeric: true, cell: (row) => count(state.nodes.pods[row]), sort: (row) => state.nodes.pods[row] },
    shown === VERDICT && { title: "verdict", width: "minmax(8rem, 2fr)", cell: (row) => verdictText(verdict, row), sort: (row) => verdictText(verdict, row) },
    { title: "state", width: "minmax(6rem, 1fr)", cell: (row) => stateText(state, row), sort: (row) => stateText(state, row) },
  ].filter(Boolean);
  return grid({
    label: "Nodes",
    columns,
    rows: () => {
      nodesVersion.value;
      verdict.value;
      return Array.from({ length: state.nodes.pods.length }, (_, row) => row);
    },
    opened: (row) => setQuery({ node: state.nodes.names[row] }),
    most: 18,
    empty: "There are no nodes.",
    sorted: { column: 0, down: false },
  });
}

function verdictText(verdict, row) {
  const found = verdict.peek();
  return found ? found.names[found.of[row]] : "";
}

function stateText(state, row) {
  const marks = [];
  if (state.nodes.ready[row] === 0) marks.push("not ready");
  if (state.nodes.unschedulable[row]) marks.push("cordoned");
  const taints = state.nodes.taints.values[state.nodes.taints.codes[row]];
  if (taints) marks.push(taints);
  return marks.join(", ") || "ready";
}

function nodePanel(name, map) {
  const found = signal(null);
  const error = signal(null);
  const again = () => get(`nodes/${encodeURIComponent(name)}`).then((one) => (found.value = one), (one) => (error.value = one));
  again();
  queueMicrotask(() => map.select(rowOf(name)));
  onEnd(onRows((rows) => rows.includes(rowOf(name)) && again()));
  const close = () => {
    setQuery({ node: "" });
    map.focus();
  };
  return h("aside", { class: "narrow card panel", "aria-label": `Node ${name}`, onkeydown: (event) => event.key === "Escape" && close() },
    h("header", null, h("h2", null, h("bdi", null, name)), h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: close }, "✕")),
    () => (error.value ? failed(error.value) : found.value ? nodeDetails(found.value) : working("Reading the node")));
}

function nodeDetails(node) {
  const unready = node.conditions.find((one) => one.type === "Ready" && one.status !== "True");
  const resources = node.resources.filter((one) => one.allocatable !== "0");
  return [
    h("p", { class: "badges" }, node.unschedulable && badge("cordoned", "wait"), unready ? badge("not ready", "bad") : badge("ready", "good"), node.taints.map((one) => badge(one, "calm"))),
    plainTable("Resources", ["resource", "requested", "of"], resources.map((one) => [one.name, bar(one.share, percent(one.share)), h("span", { class: "nowrap" }, requestedOf(node, one))])),
    h("h3", null, plural(node.count, "pod")),
    grid({
      label: "Pods of the node",
      columns: [
        { title: "pod", width: "minmax(7rem, 1.6fr)", cell: (pod) => podName(`${pod.namespace}/${pod.name}`), sort: (pod) => `${pod.namespace}/${pod.name}` },
        { title: "asks for", width: "minmax(9.5rem, 2fr)", cell: (pod) => requestText(pod.requests), sort: (pod) => requestText(pod.requests) },
        { title: "priority", width: "4.5rem", numeric: true, cell: (pod) => count(pod.priority), sort: (pod) => pod.priority },
      ],
      rows: () => node.pods,
      opened: (pod) => go("pods", [pod.namespace, pod.name]),
      most: 9,
      empty: node.count ? "You may not see their names." : "No pod is on this node.",
    }),
    node.nominated.length > 0 && [h("h3", null, "Nominated"), h("p", null, node.nominated.map((pod) => [podName(`${pod.namespace}/${pod.name}`), " "]))],
    h("h3", null, "Labels"),
    h("dl", { class: "labels-list" }, Object.entries(node.labels).sort(([one], [other]) => compareNames(one, other)).map(([key, value]) => [h("dt", null, key), h("dd", null, h("bdi", null, value || "“”"))])),
  ];
}

/** As numbers of one unit, if the columns have the resource; they are as new as the node. */
function requestedOf(node, known) {
  const column = resource(cluster.peek(), known.name);
  const row = rowOf(node.name);
  return column && row >= 0 ? amounts(column.requested[row], column.allocatable[row], column.unit) : `${known.requested} of ${known.allocatable}`;
}

export function requestText(requests) {
  const usual = Object.entries(requests).filter(([key]) => key !== "pods" && key !== "ephemeral-storage");
  return usual.map(([key, value]) => `${value} ${key}`).join(", ") || "nothing";
}
