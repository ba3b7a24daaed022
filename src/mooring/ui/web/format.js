// Numbers, amounts and times as people read them.

const GROUPED = new Intl.NumberFormat("en-US");
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function count(number) {
  return GROUPED.format(number);
}

export function plural(number, thing, many = `${thing}s`) {
  return `${count(number)} ${number === 1 ? thing : many}`;
}

/** A number with at most three digits that matter. */
export function short(number) {
  if (!number) return "0";
  const size = Math.abs(number);
  if (size >= 100) return count(Math.round(number));
  return String(Number(number.toFixed(size >= 10 ? 1 : 2)));
}

const EXACT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** A part of an amount in the unit of the whole: "12.25 of 16", "36.5 of 64 GiB"; given in thousandths of cpus, bytes, or pieces. */
export function amounts(part, whole, unit) {
  if (unit === "milli") return `${EXACT.format(part / 1000)} of ${EXACT.format(whole / 1000)}`;
  if (unit !== "bytes") return `${count(part)} of ${count(whole)}`;
  const step = Math.min(Math.floor(Math.log2(Math.max(part, whole, 1)) / 10), BINARY.length - 1);
  return `${EXACT.format(part / 1024 ** step)} of ${EXACT.format(whole / 1024 ** step)} ${BINARY[step]}`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value > 0 && value < 1 ? "<1" : Math.round(value)} %`;
}

export function micros(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${Math.round(value)} µs`;
  return value < 1e6 ? `${short(value / 1000)} ms` : `${short(value / 1e6)} s`;
}

/** A span of seconds: "42 s", "6 m 12 s", "3 h 5 m", "2 d". */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Seconds since 1970 of a time of the API; NaN without one. */
export function seconds(text) {
  return text ? Date.parse(text) / 1000 : NaN;
}

/** How long ago a time was, as seen from another. */
export function since(text, now) {
  const then = seconds(text);
  return Number.isFinite(then) && then > 0 ? span(now - then) : "–";
}

export function clock(text) {
  const then = new Date(text);
  return Number.isNaN(then.getTime()) ? "–" : then.toLocaleTimeString("en-GB", { hour12: false });
}

/** @param {string} text @param {"short" | "medium"} timeStyle */
export function dateTime(text, timeStyle = "short") {
  const then = new Date(text);
  if (Number.isNaN(then.getTime()) || then.getTime() <= 0) return "–";
  return then.toLocaleString("en-GB", { dateStyle: "medium", timeStyle });
}

/** Names in the order of people: node-2 before node-10. */
const NATURAL = new Intl.Collator("en", { numeric: true });

export function compareNames(one, other) {
  return NATURAL.compare(one, other);
}

/** A label key without the domain that everybody knows. */
export function labelTitle(key) {
  return key.replace(/^(topology|node|beta|failure-domain\.beta)\.kubernetes\.io\//, "").replace(/^node-role\.kubernetes\.io\//, "role: ");
}
