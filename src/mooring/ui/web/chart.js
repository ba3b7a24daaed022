// Pictures over time: stacked columns or areas on a canvas, drawn again when they change.
import { h, effect, onEnd } from "./core.js";
import { isDark } from "./colors.js";

/**
 * series: [{name, color}]; points(): [{at (seconds), values: []}]. `brush` is a signal {from, to} or null
 * that the pointer, or the arrow keys with shift, change.
 */
export function timeChart({ label, series, points, height = 160, brush = null, bars = false }) {
  const canvas = h("canvas", { class: "chart", role: "img", "aria-label": label, tabindex: brush ? 0 : null, style: { height: `${height}px` } });
  let scale = null;

  function draw() {
    const width = canvas.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const given = points();
    const top = Math.max(1, ...given.map((one) => one.values.reduce((sum, value) => sum + value, 0)));
    const from = given.length ? given[0].at : 0;
    const until = given.length > 1 ? given[given.length - 1].at : from + 1;
    const left = 44;
    const x = (at) => left + ((at - from) / Math.max(until - from, 1e-9)) * (width - left - 8);
    const y = (value) => height - 22 - (value / top) * (height - 34);
    scale = { from, until, left, width };
    context.font = `12px ${style.fontFamily}`;
    context.fillStyle = style.getPropertyValue("--muted");
    context.strokeStyle = style.getPropertyValue("--line");
    for (const mark of new Set([0, Math.round(top / 2), top])) {
      context.fillText(String(mark), 4, y(mark) + 4);
      context.beginPath();
      context.moveTo(left, y(mark) + 0.5);
      context.lineTo(width - 8, y(mark) + 0.5);
      context.stroke();
    }
    if (given.length) {
      const text = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");
      context.fillText(text(from), left, height - 6);
      context.textAlign = "right";
      context.fillText(text(until), width - 8, height - 6);
      context.textAlign = "left";
    }
    if (bars) drawBars(context, given, series, x, y, (width - left - 8) / Math.max(given.length, 1));
    else drawAreas(context, given, series, x, y);
    if (brush?.value) {
      context.fillStyle = style.getPropertyValue("--accent-soft");
      context.fillRect(x(brush.value.from), 0, Math.max(2, x(brush.value.to) - x(brush.value.from)), height - 20);
    }
  }

  const watcher = new ResizeObserver(draw);
  watcher.observe(canvas);
  onEnd(() => watcher.disconnect());
  effect(() => {
    isDark.value;
    points();
    if (brush) brush.value;
    draw();
  });
  if (brush) addBrush(canvas, brush, () => scale);
  const isThere = (at) => points().some((one) => one.values[at]);
  const legend = h("ul", { class: "legend" }, () => series.filter((_, at) => isThere(at)).map((one) => h("li", null, swatch(one.color), one.name)));
  return h("div", { class: "chart-box" }, canvas, legend);
}

export function swatch(color) {
  return h("span", { class: "swatch", "aria-hidden": "true", style: { background: color } });
}

function drawAreas(context, given, series, x, y) {
  const base = given.map(() => 0);
  series.forEach((one, at) => {
    context.fillStyle = one.color;
    context.beginPath();
    given.forEach((point, index) => context.lineTo(x(point.at), y(base[index] + point.values[at])));
    for (let index = given.length - 1; index >= 0; index--) context.lineTo(x(given[index].at), y(base[index]));
    context.closePath();
    context.fill();
    given.forEach((point, index) => {
      base[index] += point.values[at];
    });
  });
}

function drawBars(context, given, series, x, y, step) {
  const wide = Math.max(1, step - 1);
  for (const point of given) {
    let base = 0;
    series.forEach((one, at) => {
      context.fillStyle = one.color;
      const from = y(base);
      base += point.values[at];
      context.fillRect(Math.min(x(point.at), context.canvas.clientWidth - 8 - wide), y(base), wide, from - y(base));
    });
  }
}

function addBrush(canvas, brush, scaled) {
  let began = null;
  const timeAt = (event) => {
    const { from, until, left, width } = scaled();
    const share = (event.offsetX - left) / (width - left - 8);
    return from + Math.min(Math.max(share, 0), 1) * (until - from);
  };
  canvas.addEventListener("pointerdown", (event) => {
    began = timeAt(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (began === null) return;
    const now = timeAt(event);
    brush.value = { from: Math.min(began, now), to: Math.max(began, now) };
  });
  canvas.addEventListener("pointerup", (event) => {
    if (began !== null && Math.abs(timeAt(event) - began) < 1e-3) brush.value = null;
    began = null;
  });
  canvas.addEventListener("keydown", (event) => {
    const { from, until } = scaled();
    const step = (until - from) / 20;
    const now = brush.peek() || { from, to: from + step };
    const by = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (event.key === "Escape") brush.value = null;
    else if (by && event.shiftKey) brush.value = { from: now.from, to: Math.min(until, Math.max(now.from + step, now.to + by)) };
    else if (by) brush.value = { from: Math.max(from, now.from + by), to: Math.min(until, Math.max(now.to + by, from + step)) };
    else return;
    event.preventDefault();
  });
}
