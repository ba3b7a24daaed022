// The page: its frame, its keys, and which part of it is shown.
import { effect, h, rooted, signal, untracked } from "./core.js";
import { ask, begin, connection, isLive, isOneFile } from "./api.js";
import { cluster, loadQueue, loadRecords, loadState, problem, queue, startFollowing } from "./store.js";
import { go, link, podLink, route } from "./router.js";
import { dateTime } from "./format.js";
import { empty, failed, working } from "./widgets.js";
import { overviewPage } from "./pages/overview.js";
import { nodesPage } from "./pages/nodes.js";
import { queuePage } from "./pages/queue.js";
import { podPage } from "./pages/pod.js";
import { timelinePage } from "./pages/timeline.js";
import { whatIfPage } from "./pages/whatif.js";

/** @type {Record<string, [string, string, () => Node]>} title, key, page */
const PAGES = {
  overview: ["Overview", "o", overviewPage],
  nodes: ["Nodes", "n", nodesPage],
  queue: ["Queue", "q", queuePage],
  timeline: ["Timeline", "t", timelinePage],
  "what-if": ["What if", "w", whatIfPage],
};
const MOST_FOUND = 12;
const KEYS = [
  ["/", "search nodes and pods"],
  ...Object.entries(PAGES).map(([, [title, key]]) => [`g ${key}`, title]),
  ["?", "this help"],
  ["Esc", "close a panel, leave a field"],
  ["← ↑ → ↓", "move in a map or a table; Home and End go to its ends"],
  ["Enter", "open what is marked"],
  ["+ − 0", "zoom the map; large cells show their pods"],
];

// --- the frame ------------------------------------------------------------------------------------

const main = h("main", { id: "main", tabindex: -1 });
const help = h("dialog", { "aria-label": "Keys", class: "help" },
  h("form", { method: "dialog" }, h("header", null, h("h2", null, "Keys"), h("button", { class: "plain", "aria-label": "Close" }, "✕")),
    h("dl", null, KEYS.map(([keys, text]) => [h("dt", null, keys.split(" ").map((key) => h("kbd", null, key))), h("dd", null, text)]))));

function frame() {
  const skip = (event) => {
    event.preventDefault();
    main.focus();
  };
  return [
    h("a", { class: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: link("overview") }, "mooring"),
      h("nav", { "aria-label": "Pages" }, Object.entries(PAGES).map(([name, [title]]) =>
        h("a", { href: link(name), "aria-current": () => (isShown(name) ? "page" : null) }, title))),
      search(),
      () => canReadAgain() && h("button", { type: "button", disabled: () => isReading.value, onclick: readAgain }, () => (isReading.value ? "Reading…" : "Read again")),
      h("span", { class: () => `status ${connection.value}`, role: "status" }, () => statusText()),
      h("button", { type: "button", class: "plain", "aria-label": "Keys", title: "Keys: ?", onclick: () => help.showModal() }, "?")),
    h("div", { class: "banner" }, () => (problem.value && cluster.value ? failed(problem.value) : null)),
    main,
    help,
  ];
}

/** Of a cluster that is read once, in contrast to a scheduler that is followed. */
function canReadAgain() {
  return cluster.value?.source === "cluster" && !isLive.value && !isOneFile() && !connection.value;
}

const isReading = signal(false);

async function readAgain() {
  isReading.value = true;
  try {
    await ask("read-again", {});
    await Promise.all([loadState(), loadQueue()]);
  } catch (error) {
    problem.value = error;
  }
  isReading.value = false;
}

function isShown(name) {
  const page = route.value.page;
  return page === name || (name === "queue" && page === "pods");
}

function statusText() {
  const state = cluster.value;
  if (connection.value === "ended") return "not connected";
  if (connection.value === "lost") return "connecting again";
  if (connection.value === "live") return state && !state.scheduler.leader ? "live, a replica that stands by" : "live";
  if (!state) return "";
  const when = dateTime(state.at);
  return when === "–" ? "from a file" : `as of ${when}`;
}

// --- search ---------------------------------------------------------------------------------------

function search() {
  const text = signal("");
  const at = signal(0);
  const isOpen = signal(false);
  const found = () => searchResults(text.value.trim().toLowerCase());
  const input = h("input", {
    id: "search",
    type: "search",
    role: "combobox",
    placeholder: "Search nodes and pods",
    "aria-label": "Search nodes and pods",
    "aria-expanded": () => String(isOpen.value && Boolean(text.value)),
    "aria-controls": "found",
    "aria-activedescendant": () => (isOpen.value && found().length ? `found-${at.value}` : null),
    autocomplete: "off",
    spellcheck: "false",
    oninput: (event) => {
      text.value = event.target.value;
      at.value = 0;
      isOpen.value = true;
    },
    onfocus: () => {
      isOpen.value = true;
    },
    onblur: () => setTimeout(() => (isOpen.value = false), 150),
    onkeydown: (event) => {
      const results = untracked(found);
      if (event.key === "ArrowDown") at.value = Math.min(at.peek() + 1, results.length - 1);
      else if (event.key === "ArrowUp") at.value = Math.max(at.peek() - 1, 0);
      else if (event.key === "Enter" && results[at.peek()]) open(results[at.peek()]);
      else if (event.key === "Escape") input.blur();
      else return;
      event.preventDefault();
    },
  });
  const open = (result) => {
    location.hash = result.href;
    input.value = text.value = "";
    input.blur();
  };
  return h("search", { class: "search" }, input, h("kbd", { "aria-hidden": "true" }, "/"),
    h("ul", { id: "found", role: "listbox", "aria-label": "Found", hidden: () => !(isOpen.value && text.value) }, () => {
      const results = found();
      if (!results.length) return h("li", { class: "empty", role: "option", "aria-selected": "false" }, "Nothing found. A pod that has a node: namespace/name.");
      return results.map((one, index) => h("li", { id: `found-${index}`, role: "option", "aria-selected": String(index === at.value), onpointerdown: () => open(one) }, h("span", { class: "note" }, one.kind), h("bdi", null, one.name)));
    }));
}

function searchResults(text) {
  if (!text) return [];
  const found = [];
  for (const name of cluster.value?.nodes.names || []) {
    if (found.length >= MOST_FOUND / 2) break;
    if (name.toLowerCase().includes(text)) found.push({ kind: "node", name, href: link("nodes", [], { node: name }) });
  }
  for (const pod of queue.value?.pods || []) {
    if (found.length >= MOST_FOUND) break;
    const name = `${pod.namespace}/${pod.name}`;
    if (name.toLowerCase().includes(text)) found.push({ kind: "waiting pod", name, href: podLink(pod.namespace, pod.name) });
  }
  const [namespace, pod] = text.split("/");
  if (namespace && pod && !found.some((one) => one.name === text)) found.push({ kind: "pod", name: text, href: podLink(namespace, pod) });
  return found;
}

// --- keys -----------------------------------------------------------------------------------------

let isGoing = false;

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const inField = target.closest?.("input, textarea, select");
  if (event.key === "Escape" && inField) target.blur();
  if (inField || help.open) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g";
  const page = wasGoing && Object.entries(PAGES).find(([, [, key]]) => key === event.key);
  if (page) go(page[0]);
  else if (event.key === "/") document.getElementById("search").focus();
  else if (event.key === "?") help.showModal();
  else return;
  event.preventDefault();
});

// --- pages ----------------------------------------------------------------------------------------

function showPages() {
  let shown = "";
  let finish = () => {};
  effect(() => {
    const { page, parts, query } = route.value;
    const isReady = Boolean(cluster.value);
    const error = problem.value;
    const key = JSON.stringify([page, parts, query.get("at"), isReady || error?.message]);
    if (key === shown) return;
    const isFirst = !shown;
    shown = key;
    untracked(() => {
      finish();
      const [element, end] = rooted(() => pageElement(page, isReady, error));
      finish = end;
      main.replaceChildren(element);
      const heading = main.querySelector("h1");
      document.title = `${heading?.textContent || "mooring"} · mooring`;
      if (!isFirst) heading?.focus({ preventScroll: true });
      scrollTo(0, 0);
    });
  });
}

function pageElement(page, isReady, error) {
  if (!isReady && error) return h("div", { class: "page" }, error.status === 401 ? noKey() : failed(error));
  if (!isReady) return h("div", { class: "page" }, working("Reading the cluster"));
  if (page === "pods") return podPage();
  const found = PAGES[page];
  if (found) return found[2]();
  return h("div", { class: "page" }, h("h1", { tabindex: -1 }, "Not found"), empty("There is no such page", h("p", null, h("a", { href: link("overview") }, "Overview"))));
}

function noKey() {
  return empty("This page needs its key", "The address that `mooring ui` prints opens the page once, in one browser.", "Run `mooring ui` again and open the new address.");
}

async function start() {
  document.body.append(...frame());
  showPages();
  try {
    await begin();
  } catch (error) {
    problem.value = error;
    return;
  }
  await Promise.all([loadState(), loadQueue(), loadRecords()]);
  startFollowing();
}

start();
