// Overview: what the cluster is like now, what waits, and where there is room.
import { h } from "../core.js";
import { isLive } from "../api.js";
import { amounts, count, dateTime, micros, plural, seconds, short, span } from "../format.js";
import { isDark, noneColor, rampColor } from "../colors.js";
import { cluster, counts, history_, nodesVersion, queue, seesPods } from "../store.js";
import { bar, details, empty, hiddenPods, plainTable, podName, section, tile, working } from "../widgets.js";
import { go, link } from "../router.js";
import { swatch, timeChart } from "../chart.js";
import { nodeMap } from "../nodemap.js";

export const PLACES = [
  ["active", "active", "tried next"],
  ["backoff", "backoff", "wait before the next try"],
  ["unschedulable", "unschedulable", "wait for a change of the cluster"],
  ["gated", "gated", "held by a gate"],
  ["waiting", "waiting", "held at Permit"],
  ["inFlight", "in flight", "being decided"],
];
const PLACE_COLORS = ["#0072b2", "#56b4e9", "#d55e00", "#999999", "#cc79a7", "#e69f00"];

/** By place: why pods wait that no plugin has refused. */
export const UNREFUSED = { active: "not tried yet", backoff: "tried again soon", gated: "held by a gate", waiting: "held at Permit", "in flight": "being decided" };

export function overviewPage() {
  return h("div", { class: "page" },
    h("h1", { tabindex: -1 }, "Overview"),
    h("div", { class: "tiles" }, () => tiles(cluster.value)),
    h("div", { class: "columns" },
      h("div", { class: "wide" }, section("Nodes by requested cpu", overviewMap()), section("What waits", () => whatWaits())),
      h("div", { class: "narrow" }, section("Queue", () => queueNow(), queueChart()), section("Room", () => room()), () => notes())));
}

function sum(numbers) {
  let total = 0;
  for (const one of numbers) total += one;
  return total;
}

function tiles(state) {
  nodesVersion.value;
  const nodes = state.nodes;
  const cordoned = sum(nodes.unschedulable);
  const unready = nodes.ready.length - sum(nodes.ready);
  const marks = [cordoned && `${count(cordoned)} cordoned`, unready && `${count(unready)} not ready`].filter(Boolean);
  const now = counts.value;
  const waiting = sum(Object.values(now.queue));
  const found = [
    tile("Nodes", count(nodes.pods.length), marks.join(", ") || "all ready", link("nodes")),
    tile("Pods on nodes", count(sum(nodes.pods)), `${short(sum(nodes.pods) / Math.max(nodes.pods.length, 1))} per node`, link("nodes", [], { by: "pods" })),
    tile("Pods that wait", count(waiting), waiting ? `${count(now.queue.unschedulable)} unschedulable` : "nothing waits", link("queue")),
  ];
  if (now.rates) {
    found.push(tile("Decisions", `${short(now.rates.decisionsPerSecond)}/s`, `${short(now.rates.boundPerSecond)}/s bound`, link("timeline")));
    found.push(tile("A decision takes", micros(now.rates.p50Us || null), now.rates.p50Us ? `${micros(now.rates.p99Us)} at the 99th percentile` : "none lately", link("timeline")));
  } else if (!isLive.value) {
    const what = state.source === "file" ? "Read from a file" : "Read from the cluster";
    const [day, time] = dateTime(state.at).split(", ");
    const by = state.scheduler.name ? `written by ${state.scheduler.name} ${state.scheduler.version}` : "no decisions are recorded";
    found.push(tile(what, time ? day : "no time given", time ? `${time}, ${by}` : by));
  }
  return found;
}

function overviewMap() {
  const choice = () => ({ by: "cpu", group: "topology.kubernetes.io/zone", verdict: null });
  const { map, legend } = nodeMap({
    label: "Heat map of all nodes by requested cpu; arrows move, Enter opens a node",
    choice,
    opened: (row) => go("nodes", [], { node: cluster.peek().nodes.names[row] }),
    looked: (row) => {
      readout.textContent = row < 0 ? " " : map.describe(row);
    },
  });
  map.id = "overview-map";
  map.className = "small";
  const readout = h("p", { class: "readout" }, " ");
  return [map, readout, legend];
}

function queueNow() {
  const now = counts.value.queue;
  const total = sum(Object.values(now));
  if (!total) return h("p", { class: "empty" }, "No pod waits.");
  /** @type {[number, string][]} */
  const shares = PLACES.map(([key], at) => [now[key] / total, PLACE_COLORS[at]]);
  return [
    h("div", { class: "stack", "aria-hidden": "true" }, shares.map(([share, color]) => share > 0 && h("span", { style: { width: `${share * 100}%`, background: color } }))),
    plainTable("Pods in the queue by place", ["place", "pods"], PLACES.filter(([key]) => now[key]).map(([key, title, text]) => [
      [swatch(PLACE_COLORS[PLACES.findIndex((one) => one[0] === key)]), h("a", { href: link("queue", [], { place: title }) }, title), h("span", { class: "note" }, ` ${text}`)],
      count(now[key]),
    ]), [1]),
  ];
}

function queueChart() {
  return () => {
    if (!isLive.value) return null;
    const points = () => history_.value.map((frame) => ({ at: seconds(frame.at), values: PLACES.map(([key]) => frame.counts[key] || 0) }));
    return [
      timeChart({ label: "Pods in the queue over time, by place", series: PLACES.map(([, name], at) => ({ name, color: PLACE_COLORS[at] })), points, height: 130 }),
      details("As a table", () => plainTable("Queue over time", ["time", ...PLACES.map((one) => one[1])],
        history_.peek().slice(-20).reverse().map((frame) => [frame.at.slice(11, 19), ...PLACES.map(([key]) => count(frame.counts[key] || 0))]), [1, 2, 3, 4, 5, 6])),
    ];
  };
}

/** Pods that wait, grouped by place, what refuses them, and what they ask for. */
export function groupWaiting(pods) {
  const groups = new Map();
  for (const pod of pods) {
    const key = JSON.stringify([pod.place, pod.plugins, pod.shape]);
    const group = groups.get(key) || { place: pod.place, plugins: pod.plugins, shape: pod.shape, pods: [], oldest: Infinity };
    group.pods.push(pod);
    const at = seconds(pod.since);
    if (at > 0) group.oldest = Math.min(group.oldest, at);
    groups.set(key, group);
  }
  return [...groups.values()].sort((one, other) => other.pods.length - one.pods.length);
}

function whatWaits() {
  const waiting = queue.value;
  if (!waiting) return working("Reading the queue");
  if (!seesPods()) return hiddenPods(sum(Object.values(counts.value.queue)));
  if (!waiting.pods.length) return empty("Nothing waits", "Every pod has a node.");
  const now = seconds(waiting.at);
  const groups = groupWaiting(waiting.pods);
  const most = groups[0].pods.length;
  return [
    plainTable("Pods that wait, by shape", ["pods", "each asks for", "refused by", "longest", "such as"], groups.slice(0, 12).map((group) => {
      const first = group.pods[0];
      return [
        bar(group.pods.length / most, count(group.pods.length)),
        group.shape,
        group.plugins.join(", ") || h("span", { class: "note" }, UNREFUSED[group.place] || group.place),
        Number.isFinite(group.oldest) ? span(now - group.oldest) : "–",
        podName(`${first.namespace}/${first.name}`),
      ];
    })),
    h("p", { class: "note" }, groups.length > 12 ? `${plural(groups.length - 12, "more shape")}. ` : "", h("a", { href: link("queue") }, "All pods that wait")),
  ];
}

function room() {
  nodesVersion.value;
  const dark = isDark.value;
  const rows = cluster.value.nodes.resources.filter((one) => sum(one.allocatable)).map((one) => {
    const taken = sum(one.requested);
    const offered = sum(one.allocatable);
    return [one.name, bar(taken / offered), h("span", { class: "nowrap" }, amounts(taken, offered, one.unit)), spread(one, dark)];
  });
  return plainTable("Requested of all nodes by resource", ["resource", "requested", "of", "nodes by share"], rows);
}

/** Ten columns: how many nodes are 0 to 10 % full, and so on. */
function spread(column, dark) {
  const buckets = new Array(10).fill(0);
  column.allocatable.forEach((offered, row) => {
    if (offered) buckets[Math.min(9, Math.floor((column.requested[row] / offered) * 10))] += 1;
  });
  const most = Math.max(...buckets, 1);
  const text = buckets.map((number, at) => number && `${number} nodes ${at * 10} to ${at * 10 + 10} %`).filter(Boolean).join(", ");
  return h("span", { class: "spread", role: "img", "aria-label": text, title: text },
    buckets.map((number, at) => h("span", { style: { height: `${number ? Math.max(8, (number / most) * 100) : 2}%`, background: number ? rampColor(0.25 + at / 12, dark) : noneColor(dark) } })));
}

function notes() {
  const given = [...(cluster.value.notes || [])];
  if (cluster.value.shown?.nodes === "anonymous") given.push("You may not list nodes: they have no names here.");
  if (cluster.value.shown?.pods === "namespace") given.push(`Only pods of the namespace ${cluster.value.shown.namespace} have names here.`);
  if (cluster.value.shown?.pods === "counts") given.push("You may not list pods: they are counted, not named.");
  return given.length ? section("Notes", h("ul", { class: "notes" }, given.map((one) => h("li", null, one)))) : null;
}
