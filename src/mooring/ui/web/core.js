// Signals, effects and elements: all of the reactivity of this page.
// A signal has a value; an effect runs again, once per tick, when a signal it read has changed.
// Effects that are made inside another effect, or inside `rooted`, end together with it.

/** @typedef {{run: () => void, sources: Set<Set<Effect>>, inner: Effect[], dead: boolean, cleanup?: () => void}} Effect */

/** @type {Effect | null} */
let running = null;
/** @type {Set<Effect>} */
const planned = new Set();

/** @template T @param {T} value */
export function signal(value) {
  /** @type {Set<Effect>} */
  const readers = new Set();
  return {
    get value() {
      if (running && running.sources) {
        readers.add(running);
        running.sources.add(readers);
      }
      return value;
    },
    set value(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const reader of readers) plan(reader);
    },
    peek: () => value,
    /** The value has changed inside. */
    touch() {
      for (const reader of readers) plan(reader);
    },
  };
}

function plan(effect) {
  if (!planned.size) queueMicrotask(flush);
  planned.add(effect);
}

function flush() {
  for (const one of planned) {
    planned.delete(one);
    if (!one.dead) one.run();
  }
}

function forget(effect) {
  for (const source of effect.sources) source.delete(effect);
  effect.sources.clear();
  for (const one of effect.inner) end(one);
  effect.inner = [];
}

function end(effect) {
  effect.dead = true;
  forget(effect);
  if (effect.cleanup) effect.cleanup();
}

/** Run `work` now, and again when what it read has changed. Returns a function that ends it. */
export function effect(work) {
  const self = { sources: new Set(), inner: [], dead: false, run() {}, cleanup: null };
  self.run = () => {
    forget(self);
    const outer = running;
    running = self;
    try {
      work();
    } finally {
      running = outer;
    }
  };
  if (running) running.inner.push(self);
  self.run();
  return () => end(self);
}

/** Run `work` once; returns its result and a function that ends every effect made inside. */
export function rooted(work) {
  const self = { sources: null, inner: [], dead: false, run() {}, cleanup: null };
  const outer = running;
  running = /** @type {any} */ (self);
  try {
    return [work(), () => self.inner.splice(0).forEach(end)];
  } finally {
    running = outer;
  }
}

/** Call `work` when the effect or root that is being made ends. */
export function onEnd(work) {
  if (running) running.inner.push({ sources: new Set(), inner: [], dead: false, run() {}, cleanup: work });
}

/** Read signals without depending on them. */
export function untracked(work) {
  const outer = running;
  running = null;
  try {
    return work();
  } finally {
    running = outer;
  }
}

/**
 * An element. Properties that are functions are effects, except handlers ("onclick"); children may be
 * nodes, texts, lists and functions that return these. Text is never parsed as HTML.
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (typeof value === "function") effect(() => setProperty(element, name, value()));
    else setProperty(element, name, value);
  }
  append(element, children);
  return element;
}

function setProperty(element, name, value) {
  if (name === "value" || name === "checked" || name === "selected" || name === "open") element[name] = value;
  else if (name === "style") Object.entries(value).forEach(([key, text]) => element.style.setProperty(key, text));
  else if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

export function append(parent, child) {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else if (typeof child === "function") region(parent, child);
  else parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
}

/** Children that are made anew when what they read has changed. */
function region(parent, make) {
  const mark = document.createComment("");
  parent.append(mark);
  let shown = [];
  effect(() => {
    const fresh = document.createDocumentFragment();
    append(fresh, make());
    for (const one of shown) one.remove();
    shown = [...fresh.childNodes];
    mark.after(fresh);
  });
}
