// Answers of /lens/v1: over HTTP with the key of this page, or from the data inside this file.
import { signal } from "./core.js";

const KEY = "mooring-key";
const FIRST_RETRY = 1000;
const LONGEST_RETRY = 15000;

/** The answers that a page in one file carries; null if there is a server. */
let inside = null;

/** How the page is connected: "", "live", "lost", "ended" (the key is not known any more). */
export const connection = signal("");
/** Whether changes are followed. */
export const isLive = signal(false);

export class LensError extends Error {
  constructor(status, message, reason = "") {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export function isOneFile() {
  return inside !== null;
}

/** Take the token out of the address and exchange it; read the data of a page in one file. */
export async function begin() {
  const data = document.getElementById("mooring-data");
  if (data) {
    inside = JSON.parse(await unpacked(data.textContent.trim()));
    return;
  }
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", `${location.pathname}#/overview`);
  dispatchEvent(new Event("hashchange"));
  const answer = await fetch("session", { method: "POST", body: JSON.stringify({ token }) });
  if (!answer.ok) {
    if (localStorage.getItem(KEY)) return; // opened a second time in the same browser
    throw await failure(answer);
  }
  localStorage.setItem(KEY, (await answer.json()).key);
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function failure(answer) {
  let status = {};
  try {
    status = await answer.json();
  } catch {
    status = {};
  }
  return new LensError(answer.status, status.message || `${answer.status} ${answer.statusText}`, status.reason);
}

async function send(path, options = {}) {
  const headers = { Authorization: `Bearer ${localStorage.getItem(KEY) || ""}` };
  let answer;
  try {
    answer = await fetch(`lens/v1/${path}`, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new LensError(0, "The server does not answer. Is `mooring ui` still running?");
  }
  if (answer.status === 401) connection.value = "ended";
  if (!answer.ok) throw await failure(answer);
  return answer;
}

/** GET a path below /lens/v1/. */
export async function get(path, abort) {
  if (inside) {
    const [bare, query = ""] = path.split("?");
    const key = decodeURIComponent(bare);
    const found = inside[`${key}?${query}`] ?? (query.includes("matrix") ? undefined : inside[key]);
    if (found === undefined) throw new LensError(404, "This page was written into one file, and this is not in it.", "NotInFile");
    return found;
  }
  return (await send(path, { signal: abort })).json();
}

/** POST a question. */
export async function ask(path, question, abort) {
  if (inside) throw new LensError(404, "A page in one file answers no new questions.", "NotInFile");
  return (await send(path, { method: "POST", body: JSON.stringify(question), signal: abort })).json();
}

export function podPath(key, query = "") {
  const [namespace, ...name] = key.split("/");
  return `pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name.join("/"))}/explain${query}`;
}

/** Follow the stream of changes, and begin again whenever it ends; `taken(event, data)`. */
export async function follow(taken, abort) {
  let wait = FIRST_RETRY;
  while (!abort.aborted) {
    try {
      const answer = await send("stream", { signal: abort });
      connection.value = "live";
      isLive.value = true;
      wait = FIRST_RETRY;
      await readEvents(answer.body.getReader(), taken);
      taken("reset", {}); // what happened meanwhile is not known
    } catch (error) {
      if (abort.aborted || connection.peek() === "ended") return;
      if (error instanceof LensError && error.status === 404) return; // nothing changes here
      connection.value = "lost";
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, LONGEST_RETRY);
  }
}

async function readEvents(reader, taken) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      let event = "message";
      let data = "";
      for (const line of part.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data += line.slice(5).trim();
      }
      if (data) taken(event, JSON.parse(data));
    }
  }
}
