// Nodes as a map: groups by a label, colours by a resource or by the verdicts on a pod.
import { h, effect, onEnd } from "./core.js";
import { amounts, compareNames, count, percent, plural } from "./format.js";
import { MOST_CATEGORIES, category, fitsColor, isDark, noneColor, overColor, pixel, ramp, rampColor, rampStep } from "./colors.js";
import { cluster, onRows, resource } from "./store.js";
import { swatch } from "./chart.js";
import { LensMap } from "./heatmap.js";

export const PODS = "pods";
export const ZONE = "topology.kubernetes.io/zone";

/** The names of nodes; numbers if they may not be seen. */
export function nodeTitle(state, row) {
  return state.nodes.names[row] ?? `a node (${row + 1})`;
}

/** What the map can be grouped by: the zone first. */
export function groupings(state) {
  const keys = state.nodes.labels.map((one) => one.key).filter((key) => key !== "kubernetes.io/hostname");
  keys.sort((one, other) => Number(other === ZONE) - Number(one === ZONE) || compareNames(one, other));
  return keys;
}

export function groupsBy(state, key) {
  const nodes = state.nodes;
  const total = nodes.count ?? nodes.names.length;
  const all = Array.from({ length: total }, (_, row) => row);
  if (nodes.names.length) all.sort((one, other) => compareNames(nodes.names[one], nodes.names[other]));
  const column = nodes.labels.find((one) => one.key === key);
  if (!column) return [{ title: "all nodes", rows: all }];
  const groups = new Map();
  for (const row of all) {
    const code = column.codes[row];
    if (!groups.has(code)) groups.set(code, []);
    groups.get(code).push(row);
  }
  const found = [...groups].map(([code, rows]) => ({ title: code < 0 ? "without" : column.values[code] || "empty", rows, absent: code < 0 }));
  return found.sort((one, other) => Number(one.absent) - Number(other.absent) || compareNames(one.title, other.title));
}

/** Bits for each node: 1 cordoned, 2 not ready. */
export function flagsOf(state) {
  const flags = new Uint8Array(state.nodes.unschedulable.length);
  for (let row = 0; row < flags.length; row++) flags[row] = flagOf(state, row);
  return flags;
}

function flagOf(state, row) {
  return (state.nodes.unschedulable[row] ? 1 : 0) | (state.nodes.ready[row] === 0 ? 2 : 0);
}

/**
 * How nodes are coloured: {color(row), text(row), legend()}. `by` is a resource, "pods", or a verdict
 * with {names, of: Int32Array by row, counts, isNeutral: the first of them is nothing special}.
 */
export function painting(state, by, verdict) {
  const dark = isDark.value;
  if (verdict) {
    const color = (at) => (at === 0 && verdict.isNeutral ? noneColor(dark) : verdictColor(at, dark));
    const pixels = verdict.names.map((_, at) => pixel(color(at)));
    return {
      color: (row) => pixels[Math.min(verdict.of[row], pixels.length - 1)],
      text: (row) => verdict.names[Math.min(verdict.of[row], verdict.names.length - 1)],
      legend: () => verdict.names.map((name, at) => [color(at), `${name}: ${count(verdict.counts[at])}`]),
    };
  }
  const pixels = ramp(dark);
  const column = resource(state, by) ?? resource(state, PODS) ?? state.nodes.resources[0];
  if (!column) return { color: () => pixels[pixels.length - 1], text: () => "", legend: () => [] };
  return {
    color: (row) => pixels[rampStep(column.requested[row], column.allocatable[row])],
    text: (row) => shareText(column, row),
    legend: () => [
      ...[0, 0.25, 0.5, 0.75, 1].map((share) => [rampColor(share, dark), percent(share)]),
      [overColor(dark), "over"],
      [noneColor(dark), "has none"],
    ],
  };
}

export function shareText(column, row) {
  const taken = column.requested[row];
  const offered = column.allocatable[row];
  if (!offered && !taken) return `no ${column.name}`;
  return `${column.name} ${percent(taken / offered)} (${amounts(taken, offered, column.unit)})`;
}

function verdictColor(at, dark) {
  return at === 0 ? fitsColor(dark) : category(at - 1, dark);
}

/** The verdicts of a matrix by row: 0 fits, then the most frequent reasons. */
export function verdictOf(state, matrix) {
  const most = MOST_CATEGORIES - 1;
  const told = matrix.said ? matrix.said.reasons : [];
  const reasons = [...new Set(told)]; // one text may stand for several codes
  const codeOf = [0, ...told.map((text) => reasons.indexOf(text) + 1)];
  const total = new Array(reasons.length + 1).fill(0);
  if (matrix.said) for (const one of matrix.said.nodes) total[codeOf[one]] += 1;
  else total[0] = matrix.nodes.length;
  const byCount = reasons.map((_, at) => at + 1).sort((one, other) => total[other] - total[one]);
  const place = new Map([[0, 0]]);
  byCount.forEach((code, at) => place.set(code, Math.min(at + 1, most + 1)));
  const names = ["fits", ...byCount.slice(0, most).map((code) => reasons[code - 1])];
  const counts = [total[0], ...byCount.slice(0, most).map((code) => total[code])];
  if (byCount.length > most) {
    names.push("other reasons");
    counts.push(byCount.slice(most).reduce((sum, code) => sum + total[code], 0));
  }
  const of = new Int32Array(state.nodes.pods.length);
  const rows = new Map(state.nodes.names.map((name, row) => [name, row]));
  matrix.nodes.forEach((name, at) => {
    const row = rows.get(name);
    if (row !== undefined) of[row] = place.get(matrix.said ? codeOf[matrix.said.nodes[at]] : 0);
  });
  return { names, counts, of };
}

export function describeNode(state, row, text) {
  const marks = [];
  if (state.nodes.unschedulable[row]) marks.push("cordoned");
  if (state.nodes.ready[row] === 0) marks.push("not ready");
  return [nodeTitle(state, row), text, plural(state.nodes.pods[row], "pod"), ...marks].filter(Boolean).join(", ");
}

/**
 * The element. `choice()` reads signals and returns {by, group, verdict}; it is called again when they
 * change. Changes of the cluster repaint the cells they concern.
 */
export function nodeMap({ label, choice, opened, looked }) {
  const map = new LensMap();
  map.setAttribute("aria-label", label);
  let paint = null;
  map.onopen = opened;
  map.onlook = looked;
  map.describe = (row) => (row < 0 || !paint ? "" : describeNode(cluster.peek(), row, paint.text(row)));
  effect(() => {
    const state = cluster.value;
    if (!state) return;
    const { by, group, verdict } = choice();
    paint = painting(state, by, verdict);
    const colors = new Uint32Array(state.nodes.pods.length);
    for (let row = 0; row < colors.length; row++) colors[row] = paint.color(row);
    const mark = pixel(isDark.value ? "#0d1117" : "#ffffff");
    map.show({ groups: groupsBy(state, group), colors, flags: flagsOf(state), pods: state.nodes.pods, mark });
  });
  onEnd(onRows((rows) => {
    const { colors, flags } = map.model;
    for (const row of rows) {
      colors[row] = paint.color(row);
      flags[row] = flagOf(cluster.peek(), row);
    }
    map.repaint(rows);
  }));
  const legend = h("ul", { class: "legend" }, () => {
    const state = cluster.value;
    if (!state) return null;
    const { by, verdict } = choice();
    return [
      painting(state, by, verdict).legend().map(([color, text]) => h("li", null, swatch(color), text)),
      h("li", null, h("span", { class: "swatch striped", "aria-hidden": "true" }), "cordoned"),
      h("li", null, h("span", { class: "swatch crossed", "aria-hidden": "true" }), "not ready"),
    ];
  });
  return { map, legend };
}
