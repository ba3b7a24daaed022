// Queue: the pods without a node, filtered by the address.
import { h } from "../core.js";
import { count, plural, seconds, since, span } from "../format.js";
import { counts, queue, seesPods } from "../store.js";
import { go, route, setQuery } from "../router.js";
import { empty, hiddenPods, select, working } from "../widgets.js";
import { grid } from "../grid.js";
import { PLACES, UNREFUSED } from "./overview.js";

export function queuePage() {
  const query = () => route.value.query;
  const place = () => query().get("place") || "";
  const plugin = () => query().get("plugin") || "";
  const text = () => (query().get("q") || "").toLowerCase();
  const rows = () => (queue.value?.pods || []).filter((pod) => matches(pod, place(), plugin(), text()));

  return h("div", { class: "page" },
    h("h1", { tabindex: -1 }, "Queue"),
    h("div", { class: "toolbar", role: "toolbar", "aria-label": "Filters" },
      h("span", { class: "buttons", role: "group", "aria-label": "Place" }, () => placeButtons(place())),
      () => seesPods() && select("Refused by", [["", "any plugin"], ...pluginsOf(queue.value).map((one) => [one, one])], plugin(), (value) => setQuery({ plugin: value })),
      seesPods() && h("span", { class: "choose" }, h("label", { for: "queue-text" }, "Contains"),
        h("input", { id: "queue-text", type: "search", value: query().get("q") || "", oninput: (event) => setQuery({ q: event.target.value }), spellcheck: "false", autocomplete: "off" }))),
    () => !queue.value && working("Reading the queue"),
    () => queue.value && !seesPods() && hiddenPods(),
    () => (queue.value && seesPods() && !queue.value.pods.length ? empty("Nothing waits", "Every pod has a node. Pods appear here when they are created and until they are bound.") : null),
    h("section", { class: "card", hidden: () => !queue.value?.pods.length },
      h("p", { class: "note" }, () => queue.value && summary(rows().length, queue.value)),
      grid({
        label: "Pods without a node",
        columns: [
          { title: "pod", width: "minmax(10rem, 2fr)", cell: (pod) => h("bdi", null, `${pod.namespace}/${pod.name}`), sort: (pod) => `${pod.namespace}/${pod.name}` },
          { title: "place", width: "7.5rem", cell: (pod) => pod.place, sort: (pod) => pod.place },
          { title: "asks for", width: "minmax(9.5rem, 1.5fr)", cell: (pod) => pod.shape, sort: (pod) => pod.shape },
          { title: "refused by", width: "minmax(8.5rem, 2.6fr)", cell: (pod) => pod.plugins.join(", ") || pod.message || UNREFUSED[pod.place] || "", sort: (pod) => pod.plugins.join() },
          { title: "waits for", width: "5.5rem", numeric: true, cell: (pod) => since(pod.since, seconds(queue.peek().at)), sort: (pod) => -(seconds(pod.since) || Infinity) },
          { title: "attempts", width: "4.8rem", numeric: true, cell: (pod) => count(pod.attempts), sort: (pod) => pod.attempts },
          { title: "next try", width: "5.5rem", numeric: true, cell: (pod) => nextTry(pod), sort: (pod) => seconds(pod.nextTry) || Infinity },
          { title: "priority", width: "4.8rem", numeric: true, cell: (pod) => count(pod.priority), sort: (pod) => pod.priority },
        ],
        rows,
        opened: (pod) => go("pods", [pod.namespace, pod.name]),
        most: 20,
        empty: "No pod matches these filters.",
      })));
}

function matches(pod, place, plugin, text) {
  if (place && pod.place !== place) return false;
  if (plugin && !pod.plugins.includes(plugin)) return false;
  return !text || `${pod.namespace}/${pod.name} ${pod.shape} ${pod.message}`.toLowerCase().includes(text);
}

function placeButtons(current) {
  const now = counts.value?.queue || {};
  const all = Object.values(now).reduce((sum, one) => sum + one, 0);
  const button = (value, title, number, text) =>
    h("button", { type: "button", title: text, "aria-pressed": String(current === value), onclick: () => setQuery({ place: value }) }, title, h("span", { class: "number-in" }, count(number)));
  return [button("", "all", all, "every place"), ...PLACES.filter(([key, title]) => now[key] || title === current).map(([key, title, text]) => button(title, title, now[key] || 0, text))];
}

function pluginsOf(waiting) {
  return [...new Set((waiting?.pods || []).flatMap((pod) => pod.plugins))].sort();
}

function nextTry(pod) {
  const then = seconds(pod.nextTry);
  if (!Number.isFinite(then) || pod.place === "gated") return "–"; // not before its gates are gone
  const rest = then - seconds(queue.peek().at);
  return rest > 0 ? `in ${span(rest)}` : "now";
}

function summary(number, waiting) {
  const total = waiting.pods.length;
  const shown = number === total ? plural(number, "pod") : `${count(number)} of ${plural(total, "pod")}`;
  return `${shown}${waiting.truncated ? "; there are more than the server sends" : ""}. Enter explains a pod.`;
}
