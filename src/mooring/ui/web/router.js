// Where we are: the part of the address after #, such as #/queue?place=backoff.
import { signal } from "./core.js";

function parse() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodePart);
  return { page: parts[0] || "overview", parts: parts.slice(1), query: new URLSearchParams(query) };
}

function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal(parse());

addEventListener("hashchange", () => {
  route.value = parse();
});

export function link(page, parts = [], query = {}) {
  const path = [page, ...parts].map(encodeURIComponent).join("/");
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${path}${given.size ? `?${given}` : ""}`;
}

export function go(page, parts, query) {
  location.hash = link(page, parts, query);
}

/** Change parts of the query, without a new entry in the history. */
export function setQuery(changes) {
  const { page, parts, query } = parse();
  const given = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, "", link(page, parts, given));
  route.value = parse();
}

export function podLink(namespace, name, query) {
  return link("pods", [namespace, name], query);
}
