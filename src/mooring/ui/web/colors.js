// Colours of pictures, for both schemes. Sequences differ in lightness, so that they are told apart
// without hue; categories are those of Okabe and Ito, which colour-blind eyes tell apart.
import { signal } from "./core.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
export const isDark = signal(DARK.matches);
DARK.addEventListener("change", () => {
  isDark.value = DARK.matches;
});

const STOPS = {
  light: ["#e4ebf3", "#bcd4ea", "#7fb0da", "#3f82bd", "#17538f", "#0a2c57"],
  dark: ["#26303d", "#2c4a68", "#32709f", "#4b9ad0", "#8cc6ee", "#e2f3ff"],
};
const OVER = { light: "#b0156f", dark: "#ff7ac2" };
const NONE = { light: "#eceef1", dark: "#222933" };
const FITS = { light: "#0b8f6a", dark: "#2bbf95" };
const CATEGORIES = {
  light: ["#e08a4e", "#efc45f", "#dba3c3", "#8fcbef", "#f3eb8a", "#4f9ac6", "#b9bec6"],
  dark: ["#b0561a", "#b98a1c", "#a5668a", "#4a8fb5", "#a39c36", "#1f6593", "#6d7480"],
};
export const MOST_CATEGORIES = CATEGORIES.light.length;
const STEPS = 64;

/** "#rrggbb" as a pixel of ImageData. */
export function pixel(hex) {
  const value = parseInt(hex.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

function between(one, other, share) {
  const parts = [1, 3, 5].map((at) => {
    const from = parseInt(one.slice(at, at + 2), 16);
    const to = parseInt(other.slice(at, at + 2), 16);
    return Math.round(from + (to - from) * share).toString(16).padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

export function rampColor(share, dark) {
  const stops = STOPS[dark ? "dark" : "light"];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const first = Math.min(Math.floor(at), stops.length - 2);
  return between(stops[first], stops[first + 1], at - first);
}

const RAMPS = new Map();

/** Pixels for shares from 0 to 1; then that for more than 1, then that for "has none". */
export function ramp(dark) {
  const key = dark ? "dark" : "light";
  if (!RAMPS.has(key)) {
    const pixels = new Uint32Array(STEPS + 2);
    for (let at = 0; at < STEPS; at++) pixels[at] = pixel(rampColor(at / (STEPS - 1), dark));
    pixels[STEPS] = pixel(OVER[key]);
    pixels[STEPS + 1] = pixel(NONE[key]);
    RAMPS.set(key, pixels);
  }
  return RAMPS.get(key);
}

/** The place in `ramp` of an amount. */
export function rampStep(taken, offered) {
  if (!offered) return taken ? STEPS : STEPS + 1;
  if (taken > offered) return STEPS;
  return Math.round((taken / offered) * (STEPS - 1));
}

export function category(at, dark) {
  return CATEGORIES[dark ? "dark" : "light"][Math.min(at, MOST_CATEGORIES - 1)];
}

export function overColor(dark) {
  return OVER[dark ? "dark" : "light"];
}

export function noneColor(dark) {
  return NONE[dark ? "dark" : "light"];
}

export function fitsColor(dark) {
  return FITS[dark ? "dark" : "light"];
}
