// What if: changes of the cluster on a copy, and how many more pods fit.
import { h, signal } from "../core.js";
import { count, percent, plural } from "../format.js";
import { ask, isOneFile } from "../api.js";
import { cluster, seesAll } from "../store.js";
import { route } from "../router.js";
import { bar, details, empty, failed, field, listNames, nodeName, plainTable, podName, section, tile, working } from "../widgets.js";
import { grid } from "../grid.js";
import { nodeMap, nodeTitle, ZONE } from "../nodemap.js";

/** A question and its answer: {running, answer, error}. */
function asking(path, asked) {
  const state = signal(/** @type {{running?: boolean, answer?: any, error?: any}} */ ({}));
  let abort = null;
  return {
    state,
    async run(question) {
      abort = new AbortController();
      asked.value = question;
      state.value = { running: true };
      try {
        state.value = { answer: await ask(path, question, abort.signal) };
      } catch (error) {
        state.value = error.name === "AbortError" ? {} : { error };
      }
    },
    stop: () => abort?.abort(),
  };
}

function words(text) {
  return text.split(/[\s,]+/).filter(Boolean);
}

export function whatIfPage() {
  if (isOneFile()) return h("div", { class: "page" }, h("h1", { tabindex: -1 }, "What if"), empty("Not in this file", "New questions need a running mooring: `mooring ui FILE`, with the snapshot this page was made of."));
  if (!seesAll()) return h("div", { class: "page" }, h("h1", { tabindex: -1 }, "What if"), empty("This needs the whole cluster", "You may not list all pods and nodes, and every one of them counts here."));
  const given = route.peek().query;
  const text = (id, label, hint, value = "", placeholder = "") =>
    field(label, h("input", { id, name: id, value, placeholder, list: id === "scale" ? null : "node-names", spellcheck: "false", autocomplete: "off" }), hint);
  const asked = signal(null);
  const question = asking("what-if", asked);
  const submit = (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    question.run({
      drain: words(values.get("drain")),
      cordon: words(values.get("cordon")),
      removeNodes: words(values.get("remove")),
      addNodes: Number(values.get("add")) || 0,
      like: String(values.get("like")).trim(),
      scale: words(values.get("scale")),
      reschedule: values.get("reschedule") === "on",
    });
  };
  const names = cluster.peek().nodes.names;
  return h("div", { class: "page" },
    h("h1", { tabindex: -1 }, "What if"),
    h("p", { class: "lead" }, "The scheduler places all pods that have no node, once as the cluster is and once with these changes, on copies in memory. Nothing is written to the cluster."),
    h("datalist", { id: "node-names" }, names.slice(0, 500).map((name) => h("option", { value: name }))),
    section("Changes", h("form", { class: "form", onsubmit: submit, "aria-label": "Changes of the cluster" },
      text("drain", "Drain nodes", "names or patterns such as pool-a-*", given.get("drain") || ""),
      text("cordon", "Cordon nodes", "names or patterns"),
      text("remove", "Lose nodes", "with all their pods"),
      h("div", { class: "pair" },
        field("Add nodes", h("input", { id: "add", name: "add", type: "number", min: "0", max: "10000", value: given.get("add") || "0" })),
        text("like", "Like", "a node that is there", given.get("like") || names[0] || "")),
      text("scale", "Scale", "[namespace/]deploy/name=replicas; also rs, sts, rc, job", given.get("scale") || "", "shop/deploy/web=50"),
      h("div", { class: "check" }, h("input", { id: "reschedule", name: "reschedule", type: "checkbox" }), h("label", { for: "reschedule" }, "Place all pods anew")),
      h("div", { class: "actions" },
        h("button", { type: "submit", class: "primary", disabled: () => Boolean(question.state.value.running) }, "What would happen"),
        () => question.state.value.running && h("button", { type: "button", onclick: question.stop }, "Stop waiting")))),
    h("div", { role: "status", id: "what-if-answer", class: "answer" }, () => {
      const { running, answer, error } = question.state.value;
      if (running) return working("Scheduling on two copies of the cluster; with 50,000 pods this takes some seconds");
      if (error) return failed(error);
      return answer ? whatIfAnswer(answer) : null;
    }),
    capacitySection());
}

function whatIfAnswer(answer) {
  const same = !answer.moved.length && !answer.placed.length && !answer.pending.length && !answer.gone.length;
  return [
    h("h2", null, answer.changes.join("; ") || "No changes"),
    h("div", { class: "tiles" },
      tile("Moved", count(answer.moved.length), thatWait(answer.moved) || "to another node"),
      tile("Newly placed", count(answer.placed.length), "waited, or are new"),
      tile("Newly pending", count(answer.pending.length), thatWait(answer.pending) || "would have no node"),
      tile("Gone", count(answer.gone.length), "no longer there"),
      tile("Wait as before", count(answer.stillWaiting), "")),
    answer.notes.length > 0 && h("ul", { class: "notes" }, answer.notes.map((one) => h("li", null, one))),
    answer.budgets.map((one) => h("p", { class: "failed" }, `Budget ${one.budget} allows ${plural(one.allowed, "eviction")}, not ${count(one.evicted)}: it forbids `, listNames(one.pods.slice(0, 5), podName, one.pods.length - 5))),
    answer.unmanaged.length > 0 && h("p", { class: "failed" }, "No controller would make these again: ", listNames(answer.unmanaged.slice(0, 5), podName, answer.unmanaged.length - 5)),
    answer.preempted.length > 0 && h("p", { class: "failed" }, "Preemption evicts ", listNames(answer.preempted.slice(0, 5), podName, answer.preempted.length - 5)),
    same ? empty("No difference", "No pod would be placed otherwise.") : [section("Where pods come and go", changesMap(answer)), section("Pods", changesTable(answer))],
    answer.before && answer.after && section("Before and after", sides(answer.before, answer.after)),
  ];
}

/** How many have no node yet: without the changes they would get one. */
function thatWait(pods) {
  const number = pods.filter((one) => one.waits).length;
  return number && (number === pods.length ? "waiting for a node now" : `${count(number)} waiting for a node now`);
}

/** Nodes that pods leave and nodes that they go to. */
function changesMap(answer) {
  const state = cluster.peek();
  const names = ["no change", "pods come", "pods go", "pods come and go"];
  const of = new Int32Array(state.nodes.pods.length);
  const row = new Map(state.nodes.names.map((name, at) => [name, at]));
  const note = (name, bit) => {
    const at = row.get(name);
    if (at !== undefined) of[at] |= bit;
  };
  for (const one of [...answer.moved, ...answer.placed]) note(one.to, 1);
  for (const one of [...answer.moved, ...answer.pending]) if (!one.waits) note(one.from, 2);
  const total = names.map((_, at) => of.reduce((sum, one) => sum + Number(one === at), 0));
  const order = ["no change", "pods go", "pods come", "pods come and go"];
  const place = order.map((name) => names.indexOf(name));
  const verdict = { names: order, counts: place.map((at) => total[at]), of: of.map((one) => place.indexOf(one)), isNeutral: true };
  const { map, legend } = nodeMap({
    label: "Heat map of the nodes that pods leave or go to",
    choice: () => ({ by: "", group: ZONE, verdict }),
    opened: (at) => {
      location.hash = `#/nodes?node=${encodeURIComponent(nodeTitle(state, at))}`;
    },
    looked: (at) => {
      readout.textContent = at < 0 ? " " : map.describe(at);
    },
  });
  map.id = "change-map";
  map.className = "small";
  const readout = h("p", { class: "readout" }, " ");
  return [map, readout, legend];
}

/** What becomes of each pod; `without` is left out. */
export function changesTable(answer, without = "") {
  const rows = [
    ...answer.pending.map((one) => ({ pod: one.pod, what: one.waits ? "keeps waiting" : "newly pending", from: one.waits ? "" : one.from, to: "", why: [withoutThem(one), one.message].filter(Boolean).join("; ") })),
    ...answer.moved.map((one) => ({ pod: one.pod, what: one.waits ? "goes elsewhere" : "moved", from: one.waits ? "" : one.from, to: one.to, why: withoutThem(one) })),
    ...answer.placed.map((one) => ({ pod: one.pod, what: "newly placed", from: "", to: one.to, why: "" })),
    ...answer.gone.map((pod) => ({ pod, what: "gone", from: "", to: "", why: "" })),
  ].filter((row) => row.pod !== without);
  return grid({
    label: "Changes of pods",
    columns: [
      { title: "pod", width: "minmax(10rem, 2fr)", cell: (row) => h("bdi", null, row.pod), sort: (row) => row.pod },
      { title: "what", width: "8rem", cell: (row) => row.what, sort: (row) => row.what },
      { title: "from", width: "minmax(7rem, 1fr)", cell: (row) => (row.from ? nodeName(row.from) : "–"), sort: (row) => row.from },
      { title: "to", width: "minmax(7rem, 1fr)", cell: (row) => (row.to ? nodeName(row.to) : "–"), sort: (row) => row.to },
      { title: "why", width: "minmax(8rem, 2fr)", cell: (row) => row.why, sort: (row) => row.why },
    ],
    rows: () => rows,
    most: 12,
    empty: "No pod is placed otherwise.",
  });
}

/** Where a pod that has no node yet would go without the changes. */
function withoutThem(one) {
  return one.waits && one.from ? `else on ${one.from}` : "";
}

function sides(before, after) {
  const plain = [["nodes", before.nodes, after.nodes], ["pods", before.pods, after.pods], ["waiting", before.waiting, after.waiting]].map(([name, one, other]) => [name, count(one), count(other)]);
  const others = new Map(after.resources.map((one) => [one.resource, one]));
  const resources = before.resources.filter((one) => others.has(one.resource) && one.resource !== "pods" && (one.utilisation || others.get(one.resource).utilisation))
    .map((one) => [`${one.resource} requested`, bar(one.utilisation), bar(others.get(one.resource).utilisation)]);
  const imbalance = before.resources.filter((one) => one.resource === "cpu" && others.has("cpu")).map((one) => ["cpu imbalance", percent(one.imbalance), percent(others.get("cpu").imbalance)]);
  return plainTable("Before and after", ["figure", "before", "after"], [...plain, ...resources, ...imbalance]);
}

// --- capacity -------------------------------------------------------------------------------------

function capacitySection() {
  const question = asking("capacity", signal(null));
  const submit = (event) => {
    event.preventDefault();
    const values = new FormData(event.target);
    const requests = { cpu: String(values.get("cpu")).trim(), memory: String(values.get("memory")).trim() };
    for (const key of Object.keys(requests)) if (!requests[key]) delete requests[key];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "pod" }, spec: { containers: [{ name: "main", image: "main", resources: { requests } }] } };
    const manifest = String(values.get("manifest") || "").trim();
    question.run({ pods: manifest || JSON.stringify(pod), max: Number(values.get("max")) || null });
  };
  const input = (id, value, more = {}) => h("input", { id: `capacity-${id}`, name: id, value, spellcheck: "false", ...more });
  return section("How many more fit",
    h("form", { class: "form", onsubmit: submit, "aria-label": "Pods that are to fit" },
      h("div", { class: "pair short" }, field("cpu of each", input("cpu", "1")), field("memory of each", input("memory", "1Gi")), field("At most", input("max", "1000", { type: "number", min: "1" }))),
      details("Or a manifest", () => field("Pod, Deployment or other workload, as YAML", h("textarea", { id: "capacity-manifest", name: "manifest", rows: 8, spellcheck: "false" }))),
      h("div", { class: "actions" }, h("button", { type: "submit", class: "primary", disabled: () => Boolean(question.state.value.running) }, "How many fit"))),
    h("div", { role: "status", id: "capacity-answer", class: "answer" }, () => {
      const { running, answer, error } = question.state.value;
      if (running) return working("Placing copies until one does not fit");
      if (error) return failed(error);
      return answer ? capacityAnswer(answer) : null;
    }));
}

function capacityAnswer(answer) {
  const nodes = Object.entries(answer.nodes).filter(([, number]) => number).sort(([, one], [, other]) => other - one);
  const all = Object.keys(answer.nodes).length;
  return [
    h("p", { class: "summary" }, h("strong", null, plural(answer.total, "more pod")), ` ${answer.total === 1 ? "fits" : "fit"} on ${plural(nodes.length, "node")}${answer.limited ? ", which is the limit that was asked for" : ""}.`),
    answer.notes.length > 0 && h("ul", { class: "notes" }, answer.notes.map((one) => h("li", null, one))),
    Object.keys(answer.bottlenecks).length > 0 && plainTable("What keeps another pod off", ["what keeps another pod off", "nodes"], Object.entries(answer.bottlenecks).map(([why, number]) => [why, bar(number / Math.max(all, 1), count(number))])),
    answer.gains.length > 0 && plainTable("What one more on every node brings", ["one more on every node", "more pods"], answer.gains.map((one) => [`${one.resource} ${one.unit}`, count(one.pods)]), [1]),
    details("Node by node", () => grid({ label: "Pods that fit by node", columns: [{ title: "node", cell: ([name]) => h("bdi", null, name), sort: ([name]) => name }, { title: "more pods", width: "8rem", numeric: true, cell: ([, number]) => count(number), sort: ([, number]) => number }], rows: () => nodes, most: 12, empty: "No node has room." })),
  ];
}
