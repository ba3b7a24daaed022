// What is known of the cluster: loaded once, then kept current by the stream.
import { signal } from "./core.js";
import { get, follow, isOneFile } from "./api.js";

const MOST_HISTORY = 600; // frames of the queue: five minutes
const MOST_RECORDS = 5000;
const MOST_CHANGES = 500;

/** The answer of `state`; its columns change in place. */
export const cluster = signal(null);
/** Of the queue and of decisions: {queue, rates, at}; changes twice a second. */
export const counts = signal(null);
/** The answer of `queue`. */
export const queue = signal(null);
/** Newest first. */
export const records = signal([]);
/** Frames of the queue, oldest first: {at, counts, rates}. */
export const history_ = signal([]);
export const problem = signal(null);
/** Grows with every change of nodes. */
export const nodesVersion = signal(0);

/** Nodes that came, went or changed since the page was opened, newest first: {at, node, what}. */
export const nodeChanges = signal([]);

const watchers = new Set();

/** Call with the changed rows; returns a function that ends it. */
export function onRows(taken) {
  watchers.add(taken);
  return () => watchers.delete(taken);
}

export async function loadState() {
  try {
    const found = await get("state");
    found.rowOf = null;
    if (cluster.peek()) noteChanges(changesBetween(cluster.peek().nodes, found.nodes));
    cluster.value = found;
    counts.value = { queue: found.queue, rates: found.rates, at: found.at };
    problem.value = null;
    nodesVersion.value += 1;
  } catch (error) {
    problem.value = error;
  }
}

export async function loadQueue() {
  try {
    queue.value = await get("queue");
  } catch (error) {
    problem.value = error;
  }
}

export async function loadRecords() {
  try {
    const page = await get("records?limit=1000");
    records.value = page.rows;
  } catch (error) {
    if (error.status !== 404 && error.status !== 403) problem.value = error; // none are kept, or none may be seen
  }
}

/** Whether all nodes and all pods may be seen: else explanations are short, and nothing is imagined. */
export function seesAll() {
  const { shown } = cluster.peek();
  return shown.nodes === "all" && shown.pods === "all";
}

/** Whether names of pods may be seen, at least of one namespace. */
export function seesPods() {
  return cluster.peek().shown.pods !== "counts";
}

/** The row of a node; -1 if there is none. */
export function rowOf(name) {
  const state = cluster.peek();
  if (!state) return -1;
  if (!state.rowOf) state.rowOf = new Map(state.nodes.names.map((one, row) => [one, row]));
  return state.rowOf.get(name) ?? -1;
}

export function resource(state, name) {
  return state.nodes.resources.find((one) => one.name === name);
}

export function startFollowing() {
  if (isOneFile() || !cluster.peek() || cluster.peek().source === "file") return;
  let stale = 0;
  follow((event, data) => {
    if (event === "reset") loadState();
    else if (event === "nodes") applyNodes(data);
    else if (event === "queue") {
      applyQueue(data);
      if (Date.now() - stale > 3000) {
        stale = Date.now();
        loadQueue();
      }
    } else if (event === "records") applyRecords(data);
  }, new AbortController().signal);
}

function noteChanges(changes) {
  if (!changes.length) return;
  const at = new Date().toISOString();
  nodeChanges.value = [...changes.map(([node, what]) => ({ at, node, what })), ...nodeChanges.peek()].slice(0, MOST_CHANGES);
}

function changesBetween(before, after) {
  const [known, now] = [new Set(before.names), new Set(after.names)];
  const added = after.names.filter((name) => !known.has(name)).map((name) => [name, "added"]);
  const removed = before.names.filter((name) => !now.has(name)).map((name) => [name, "removed"]);
  const rows = after.names.map((name) => (name ? rowOf(name) : -1)); // those before; without names there is nothing to tell
  return [...added, ...removed, ...changesIn(before, { ...after, rows })];
}

/** What a frame changes of nodes themselves, in contrast to their pods. */
function changesIn(nodes, frame) {
  const found = [];
  const compare = (key, texts) => {
    frame.rows.forEach((row, at) => {
      if (frame[key] && nodes.names[row] !== undefined && nodes[key][row] !== frame[key][at]) found.push([nodes.names[row], texts[frame[key][at]]]);
    });
  };
  compare("unschedulable", ["uncordoned", "cordoned"]);
  compare("ready", ["not ready", "ready"]);
  return found;
}

export function applyNodes(frame) {
  const state = cluster.peek();
  if (!state) return;
  const nodes = state.nodes;
  noteChanges(changesIn(nodes, frame));
  for (const key of ["pods", "unschedulable", "ready"]) {
    const column = nodes[key];
    const changed = frame[key];
    if (changed) for (let at = 0; at < frame.rows.length; at++) column[frame.rows[at]] = changed[at];
  }
  for (const one of nodes.resources) {
    const changed = (frame.requested || {})[one.name];
    if (changed) for (let at = 0; at < frame.rows.length; at++) one.requested[frame.rows[at]] = changed[at];
  }
  state.seq = frame.seq;
  for (const taken of watchers) taken(frame.rows);
  nodesVersion.value += 1;
}

function applyQueue(frame) {
  counts.value = { queue: frame.counts, rates: frame.rates ?? counts.peek()?.rates, at: frame.at };
  const frames = history_.peek();
  frames.push(frame);
  if (frames.length > MOST_HISTORY) frames.shift();
  history_.touch();
}

function applyRecords(frame) {
  const known = new Map(records.peek().map((one) => [one.seq, one]));
  for (const row of frame.rows) known.set(row.seq, row);
  records.value = [...known.values()].sort((one, other) => other.seq - one.seq).slice(0, MOST_RECORDS);
}
