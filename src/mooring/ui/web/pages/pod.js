// Pod: why it is pending or where it is, node by node and plugin by plugin, and what would make it fit.
import { effect, h, onEnd, signal } from "../core.js";
import { clock, count, dateTime, micros, percent, plural, seconds, span } from "../format.js";
import { ask, get, isOneFile, podPath } from "../api.js";
import { go, link, route, setQuery } from "../router.js";
import { badge, bar, details, failed, kindBadge, listNames, nodeName, plainTable, podName, section, working } from "../widgets.js";
import { MOST_CATEGORIES, category, isDark } from "../colors.js";
import { swatch } from "../chart.js";
import { grid } from "../grid.js";
import { cluster, counts, seesAll } from "../store.js";
import { changesTable } from "./whatif.js";

/** @typedef {{data?: any, error?: any}} Loaded */

/** Something that is being loaded; no longer once the page is left. */
function loading(path) {
  const found = signal(/** @type {Loaded} */ ({}));
  const abort = new AbortController();
  onEnd(() => abort.abort());
  get(path, abort.signal).then((data) => (found.value = { data }), (error) => (found.value = { error }));
  return found;
}

export function podPage() {
  const { parts, query } = route.peek();
  const key = parts.slice(0, 2).join("/");
  const at = query.get("at");
  const isPast = Boolean(at) && explainsPast();
  const more = isPast ? `&at=${encodeURIComponent(at)}` : "";
  const first = loading(podPath(key, isPast ? `?depth=remedies${more}` : "?depth=groups")); // the past in one go: it is read from files
  return h("div", { class: "page" },
    h("p", { class: "crumbs" }, h("a", { href: link("queue") }, "Queue"), " / ", h("bdi", null, parts[0] ?? "")),
    h("h1", { tabindex: -1 }, h("bdi", null, key)),
    at && attemptSection(key, at, isPast),
    () => {
      const { data, error } = first.value;
      if (error) return failed(error);
      return data ? explained(key, data, more) : working(isPast ? "Reading the journal up to this attempt" : "Evaluating every node");
    });
}

/** The summary without what stands beside it: the name and the kind. */
function summaryText(key, found) {
  const text = found.summary.slice(key.length).replace(`: ${found.kind}; `, "").replace(/^ (is )?/, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Whether attempts can be explained as they were. */
function explainsPast() {
  return cluster.peek().scheduler.explainsPast && seesAll();
}

/** The attempt that was chosen in the timeline, and of what moment the rest of the page is. */
function attemptSection(key, at, isPast) {
  const found = loading(`records?limit=1&before=${Number(at) + 1}&pod=${encodeURIComponent(key)}`);
  return section(`Attempt ${count(Number(at))}`,
    () => {
      const row = found.value.data?.rows.find((one) => String(one.seq) === at);
      if (!row) return found.value.data || found.value.error ? h("p", { class: "empty" }, "It is no longer in the record.") : working("Reading the record");
      return h("p", null, `${dateTime(row.at, "medium")}: ${row.outcome}`, row.node && [" to ", nodeName(row.node)], row.refusedBy.length > 0 && `, refused by ${row.refusedBy.join(", ")}`, ".", row.message && ` ${row.message}`);
    },
    h("p", { class: "note" },
      isPast ? "Below: decided again from the journal, with the cluster as it was then. " : "Below: the pod as it is now. With --record-journal a scheduler explains an attempt as it was. ",
      isPast && h("a", { href: link("pods", key.split("/")) }, "As it is now")));
}

function explained(key, found, more) {
  const fitsNot = !found.node && !found.choice && found.kind !== "error";
  return [
    h("p", { class: "summary with-badge" }, kindBadge(found.kind), " ", summaryText(key, found)),
    found.queue && h("p", { class: "note" }, queueText(found.queue)),
    found.notes.length > 0 && h("ul", { class: "notes" }, found.notes.map((one) => h("li", null, one))),
    found.before && section("Refused before any node", refusalText(found.before)),
    found.groups.length > 0 && section("Node by node", groupsTable(found),
      seesAll() && !more && h("p", null, h("a", { href: link("nodes", [], { by: "verdict", pod: key }) }, "Show on the map"))),
    seesAll() && (fitsNot || found.kind === "gated") && remediesSection(key, found, Boolean(more)),
    found.choice && choiceSection(found),
    found.preemption && section("Preemption", preemption(found.preemption)),
    seesAll() && section("Every node", matrixSection(key, more)),
    found.message && section("What kube-scheduler says", h("pre", { class: "message" }, found.message),
      found.wakesOn.length > 0 && h("p", { class: "note" }, `Tried again when ${joined(found.wakesOn)}.`)),
    cluster.peek().source !== "file" && section("Attempts", attempts(key)),
  ];
}

function joined(texts) {
  return texts.length > 1 ? `${texts.slice(0, -1).join(", ")} or ${texts[texts.length - 1]}` : texts.join("");
}

function queueText(queued) {
  const now = seconds(counts.peek()?.at);
  const parts = [`Queue: ${queued.queue}`];
  if (queued.attempts) parts.push(plural(queued.attempts, "attempt"));
  if (queued.added_at) parts.push(`for ${span(now - queued.added_at)}`);
  if (queued.retry_at) parts.push(queued.retry_at > now ? `next try in ${span(queued.retry_at - now)} at the latest` : "next try is due");
  if (queued.ahead) parts.push(`${plural(queued.ahead, "pod")} before it`);
  return parts.join(" · ");
}

// --- groups of nodes ------------------------------------------------------------------------------

function why(refusal) {
  const facts = refusal.facts.map((one) => one.text);
  const text = facts.length ? facts.join("; ") : refusal.reasons.join(", ");
  return refusal.beside.length ? [text, " beside ", listNames(refusal.beside, podName)] : text;
}

function refusalText(refusal) {
  return h("p", null, h("strong", null, refusal.plugin), ": ", why(refusal));
}

function groupsTable(found) {
  const head = ["nodes", "refused by", "why", ...(seesAll() ? ["such as"] : [])];
  return plainTable("Groups of nodes with the same refusals", head, found.groups.map((group) => [
    bar(group.nodes / Math.max(found.nodes, 1), count(group.nodes), group.said ? "" : "good"),
    group.said ? group.said.plugin : badge("fits", "good"),
    group.said ? [h("div", null, why(group.said)), group.also.map((one) => h("div", { class: "note" }, `also ${one.plugin}: `, why(one)))] : "",
    ...(seesAll() ? [listNames(group.examples, nodeName, group.nodes - group.examples.length)] : []),
  ]));
}

// --- remedies -------------------------------------------------------------------------------------

function remediesSection(key, known, isPast) {
  const found = known.remedies ? signal(/** @type {Loaded} */ ({ data: known })) : loading(podPath(key, "?depth=remedies"));
  const tried = signal({});
  return section("What would make it fit", () => {
    const { data, error } = found.value;
    if (error) return failed(error);
    if (!data) return working("Trying changes on a copy of the cluster");
    const remedies = data.remedies || [];
    if (!remedies.length) return h("p", { class: "empty" }, "No change that is known here helps.");
    return [
      h("p", { class: "note" }, "Each was tried out on a private copy of the cluster; nothing was written."),
      h("ol", { class: "remedies" }, remedies.map((remedy, at) => remedyItem(key, remedy, at, tried, isPast))),
    ];
  });
}

/** Whether the server can imagine it: objects, not the configuration. */
function canTry(remedy) {
  return !isOneFile() && remedy.edits.every((edit) => edit.patches.every((one) => one.kind !== "KubeSchedulerConfiguration"));
}

function remedyItem(key, remedy, at, tried, isPast) {
  const target = new Set(remedy.edits.map((edit) => edit.target)).size === 1 ? remedy.edits[0].target : "both";
  const run = async () => {
    tried.value = { ...tried.peek(), [at]: { running: true } };
    const patches = remedy.edits.flatMap((edit) => edit.patches);
    try {
      const answer = await ask("what-if", { patches });
      tried.value = { ...tried.peek(), [at]: { answer } };
    } catch (error) {
      tried.value = { ...tried.peek(), [at]: { error } };
    }
  };
  return h("li", null,
    badge(target, "calm"),
    h("span", { class: "remedy-text" }, remedy.edits.map((edit, index) => [index ? h("em", null, " and ") : null, edit.text])),
    h("span", { class: "note" }, `${plural(remedy.nodes, "node")}, goes to `, nodeName(remedy.node)),
    !isPast && canTry(remedy) && h("button", { type: "button", onclick: run, "aria-label": `Try: ${remedy.edits.map((edit) => edit.text).join(" and ")}` }, "Try"),
    () => {
      const result = tried.value[at];
      if (!result) return null;
      if (result.running) return working("Scheduling everything that waits on a copy of the cluster");
      if (result.error) return failed(result.error);
      return triedResult(key, result.answer);
    });
}

function triedResult(key, answer) {
  const own = answer.placed.find((one) => one.pod === key);
  const others = answer.placed.length + answer.moved.length - (own ? 1 : 0);
  return h("div", { class: "tried", role: "status" },
    own ? h("p", null, "The pod would go to ", nodeName(own.to), others || answer.pending.length ? "; this changes as well:" : "; no other pod is placed otherwise.") : h("p", null, "With this change another pod takes the place first."),
    (others > 0 || answer.pending.length > 0) && changesTable(answer, key),
    details("The change as patches", () => h("pre", { class: "message" }, answer.changes.join("\n"))));
}

// --- points ---------------------------------------------------------------------------------------

function choiceSection(found) {
  const { choice } = found;
  const best = choice.nodes[0];
  const second = choice.runnerUp ? choice.nodes.find((one) => one.node === choice.runnerUp) : null;
  const margin = choice.tied > 1 ? `${plural(choice.tied, "node")} have ${count(choice.total)} points; the tie is broken ${choice.tieBreak}.` : second ? `${plural(choice.margin, "point")} ahead of ` : "No other node fits.";
  return section("Why this node",
    h("p", null, nodeName(choice.node), ` is the best of ${plural(found.feasible, "feasible node")}: ${plural(choice.total, "point")}. `, margin, choice.tied <= 1 && second ? [nodeName(choice.runnerUp), "."] : null),
    best && h("div", { class: "score-bars" }, scoreBars([best, second].filter(Boolean))),
    choice.difference.length > 0 && details("Where the difference comes from", () => plainTable("Difference by plugin", ["plugin", choice.node, choice.runnerUp, "difference"],
      choice.difference.map((one) => [one.plugin, count(one.best), count(one.runnerUp), (one.points > 0 ? "+" : "") + count(one.points)]), [1, 2, 3])),
    choice.flip && h("p", { class: "note" }, `${choice.flip.plugin} with weight ${choice.flip.to} instead of ${choice.flip.weight} would choose `, nodeName(choice.flip.node), "."),
    choice.nodes.length > 1 && details("The best nodes", () => plainTable("Points of the best nodes", ["place", "node", "total", ...best.plugins.map((one) => one.plugin)],
      choice.nodes.map((one) => [count(one.place), nodeName(one.node), count(one.total), ...one.plugins.map((plugin) => count(plugin.weighted))]), [0, 2, ...best.plugins.map((_, at) => at + 3)])));
}

/** A bar for each node, its parts are the plugins. */
function scoreBars(nodes) {
  const most = Math.max(...nodes.map((one) => one.total), 1);
  const plugins = nodes[0].plugins.filter((_, at) => nodes.some((one) => one.plugins[at].weighted));
  const color = (name) => category(plugins.findIndex((one) => one.plugin === name) % MOST_CATEGORIES, isDark.peek());
  return [
    nodes.map((node) => h("div", { class: "score" },
      h("span", { class: "score-name" }, nodeName(node.node)),
      h("span", { class: "score-bar", role: "img", "aria-label": node.plugins.filter((one) => one.weighted).map((one) => `${one.plugin} ${one.weighted}`).join(", ") },
        node.plugins.map((one) => one.weighted > 0 && h("span", { title: `${one.plugin}: ${one.weighted}`, style: { width: `${(one.weighted / most) * 100}%`, background: color(one.plugin) } }))),
      h("span", { class: "score-total" }, count(node.total)))),
    h("ul", { class: "legend" }, plugins.map((one) => h("li", null, swatch(color(one.plugin)), one.plugin))),
  ];
}

function preemption(found) {
  if (!found.helps) return h("p", null, found.message);
  return [
    h("p", null, "Evictions on ", nodeName(found.node), ` would make room. ${found.decidedBy ? `Decided by ${found.decidedBy}.` : ""}`),
    plainTable("Candidates", ["node", "victims", "budgets violated"], found.candidates.map((one) => [nodeName(one.node), listNames(one.victims, podName), count(one.pdbViolations)]), [2]),
  ];
}

// --- the matrix -----------------------------------------------------------------------------------

function matrixSection(key, more) {
  const wanted = signal(route.peek().query.has("matrix"));
  const found = signal(/** @type {Loaded} */ ({}));
  effect(() => {
    if (!wanted.value || found.peek().data) return;
    get(podPath(key, `?depth=matrix${more}`)).then((data) => (found.value = { data }), (error) => (found.value = { error }));
  });
  const open = () => {
    wanted.value = true;
    setQuery({ matrix: "1" });
  };
  return () => {
    if (!wanted.value) return h("button", { type: "button", onclick: open }, "Show every node and plugin");
    const { data, error } = found.value;
    if (error) return failed(error);
    if (!data) return working("Asking every plugin about every node");
    return data.matrix ? matrixGrid(data.matrix) : h("p", { class: "empty" }, "There are no nodes.");
  };
}

function matrixGrid(matrix) {
  const text = signal("");
  const only = signal("");
  const placeOf = new Map(matrix.feasible.map((row, at) => [row, at]));
  const refusing = Object.entries(matrix.refusals);
  const giving = Object.entries(matrix.points).filter(([, points]) => points.normalized.some(Boolean));
  const said = (row) => (matrix.said && matrix.said.nodes[row] ? matrix.said.reasons[matrix.said.nodes[row] - 1] : "");
  const total = (row) => (placeOf.has(row) && matrix.totals.length ? matrix.totals[placeOf.get(row)] : null);
  const given = (points, row) => (placeOf.has(row) ? (points.normalized.length === 1 ? points.normalized[0] : points.normalized[placeOf.get(row)]) * points.weight : null);
  const refusal = (refusals, row) => (refusals.nodes[row] ? refusals.reasons[refusals.nodes[row] - 1] : "");
  const columns = [
    { title: "node", width: "minmax(10rem, 1.4fr)", cell: (row) => h("bdi", null, matrix.nodes[row]), sort: (row) => matrix.nodes[row] },
    { title: "verdict", width: "minmax(10rem, 1.6fr)", cell: (row) => said(row) || "fits", sort: said },
    matrix.totals.length > 0 && { title: "points", width: "5rem", numeric: true, cell: (row) => (total(row) === null ? "–" : count(total(row))), sort: (row) => total(row) ?? -1 },
    ...refusing.map(([plugin, refusals]) => ({ title: plugin, width: "minmax(11rem, 1fr)", cell: (row) => refusal(refusals, row) || "–", sort: (row) => refusal(refusals, row) })),
    ...giving.map(([plugin, points]) => ({ title: plugin, width: `${Math.max(6, plugin.length * 0.52)}rem`, numeric: true, cell: (row) => (given(points, row) === null ? "–" : count(given(points, row))), sort: (row) => given(points, row) ?? -1 })),
  ].filter(Boolean);
  const rows = () => {
    const wanted = text.value.toLowerCase();
    return matrix.nodes.map((_, row) => row).filter((row) => (!only.value || (only.value === "fits") === !said(row)) && (!wanted || `${matrix.nodes[row]} ${said(row)}`.toLowerCase().includes(wanted)));
  };
  return [
    h("div", { class: "toolbar" },
      h("span", { class: "choose" }, h("label", { for: "matrix-text" }, "Contains"), h("input", { id: "matrix-text", type: "search", oninput: (event) => (text.value = event.target.value), spellcheck: "false" })),
      h("span", { class: "buttons", role: "group", "aria-label": "Which nodes" }, [["", "all"], ["fits", "that fit"], ["refused", "refused"]].map(([value, title]) =>
        h("button", { type: "button", "aria-pressed": () => String(only.value === value), onclick: () => (only.value = value) }, title)))),
    grid({ label: "Every node and plugin", columns, rows, opened: (row) => go("nodes", [], { node: matrix.nodes[row] }), most: 16, empty: "No node matches.", sorted: matrix.totals.length ? { column: 2, down: true } : null }),
  ];
}

// --- attempts -------------------------------------------------------------------------------------

function attempts(key) {
  const found = loading(`records?limit=50&pod=${encodeURIComponent(key)}`);
  return () => {
    const { data, error } = found.value;
    if (error) return error.status === 404 ? h("p", { class: "empty" }, "Nothing is recorded here.") : failed(error);
    if (!data) return working("Reading the record");
    if (!data.rows.length) return h("p", { class: "empty" }, "No attempt is recorded.");
    return plainTable("Attempts", ["time", "outcome", "took", "node", "verdict"], data.rows.map((row) => [
      clock(row.at), row.outcome, micros(row.tookUs), row.node ? nodeName(row.node) : "–", row.refusedBy.length ? `refused by ${row.refusedBy.join(", ")}` : percentFeasible(row),
    ]), [2]);
  };
}

function percentFeasible(row) {
  return row.evaluated ? `${percent(row.feasible / row.evaluated)} of nodes feasible` : "";
}
