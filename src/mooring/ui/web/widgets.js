// Small parts that pages are made of.
import { h } from "./core.js";
import { count, percent, plural } from "./format.js";
import { link, podLink } from "./router.js";
import { rowOf } from "./store.js";

export function section(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", null, title) : null, children);
}

export function tile(title, value, note, target) {
  const inside = [h("span", { class: "tile-title" }, title), h("strong", null, value), h("span", { class: "note" }, note)];
  return target ? h("a", { class: "tile", href: target }, inside) : h("div", { class: "tile" }, inside);
}

/** A short table that is a table: head and rows of texts or nodes. */
export function plainTable(label, head, rows, numeric = []) {
  const isNumber = (at) => (numeric.includes(at) ? "number" : null);
  return h("div", { class: "scroll" },
    h("table", { "aria-label": label },
      h("thead", null, h("tr", null, head.map((one, at) => h("th", { scope: "col", class: isNumber(at) }, one)))),
      h("tbody", null, rows.map((row) => h("tr", null, row.map((one, at) => h("td", { class: isNumber(at) }, one)))))));
}

/** A bar with its number beside it. */
export function bar(share, text, kind = "") {
  if (share > 1) kind = `${kind} over`;
  const width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return h("span", { class: `bar ${kind}` },
    h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width } })),
    h("span", { class: "bar-text" }, text ?? percent(share)));
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

export function field(label, control, hint) {
  const id = control.id || `field-${label.toLowerCase().replace(/\W+/g, "-")}`;
  control.id = id;
  return h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? h("span", { class: "note" }, hint) : null);
}

export function select(label, options, value, changed) {
  const id = `choose-${label.toLowerCase().replace(/\W+/g, "-")}`;
  const element = h("select", { id, onchange: (event) => changed(event.target.value) },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("span", { class: "choose" }, h("label", { for: id }, label), element);
}

/** In place of a picture or a table; what stands between backticks is shown as code. */
export function empty(title, ...text) {
  return h("div", { class: "empty-state" }, h("h2", null, title), text.map((one) => (one instanceof Node ? one : h("p", null, one.split("`").map((part, at) => (at % 2 ? h("code", null, part) : part))))));
}

/** In place of pods that may not be seen. */
export function hiddenPods(number) {
  return empty("Names of pods are hidden", number === undefined ? "You may not list pods." : `${plural(number, "pod")} ${number === 1 ? "waits" : "wait"}. You may not list pods, so they are only counted.`);
}

const FAILURES = { 403: "You may not see this. ", 404: "Not found. " };

export function failed(error) {
  return h("div", { class: "failed", role: "alert" }, h("strong", null, FAILURES[error.status] || "That did not work. "), error.message);
}

export function working(text) {
  return h("p", { class: "working", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), text);
}

export function podName(key, query) {
  const [namespace, ...name] = key.split("/");
  return h("a", { href: podLink(namespace, name.join("/"), query) }, h("bdi", null, key));
}

/** A link to a node, if there is one of this name. */
export function nodeName(name) {
  if (rowOf(name) < 0) return h("bdi", null, name);
  return h("a", { href: link("nodes", [], { node: name }) }, h("bdi", null, name));
}

export function listNames(names, make, more = 0) {
  const parts = [];
  names.forEach((name, at) => {
    if (at) parts.push(", ");
    parts.push(make(name));
  });
  if (more > 0) parts.push(` and ${count(more)} more`);
  return parts;
}

/** Which kinds of waiting need a person. */
export function kindBadge(kind) {
  const kinds = { misconfigured: "bad", error: "bad", gated: "calm", fits: "good", scheduled: "good" };
  return badge(kind, kinds[kind] || "wait");
}

export function details(title, make) {
  let made = false;
  const element = h("details", {
    "aria-label": title,
    ontoggle: () => {
      if (!made && element.open) {
        made = true;
        element.append(make());
      }
    },
  }, h("summary", null, title));
  return element;
}
