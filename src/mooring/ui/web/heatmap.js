// The map: a cell for each node, in blocks. All pixels are in one buffer; a change writes its cells.

const LABEL = 20; // pixels above a block
const BLOCK_GAP = 14;
const SMALLEST = 4; // pixels of a cell with its gap
const LARGEST = 48;
const MOST_PIXELS = 16e6;
const DOTS_FROM = 30; // pixels of a cell that shows its pods

/**
 * Cell size and blocks so that everything fits: the largest cells for which the blocks, all equally
 * high, stand on shelves within the height. With a fixed size the height follows.
 */
export function arrange(sizes, width, height, fixed = 0) {
  const most = Math.max(1, ...sizes);
  for (let pitch = fixed || LARGEST; ; pitch--) {
    if (fixed || pitch <= SMALLEST) {
      return { ...shelve(sizes, Math.ceil(most / Math.max(1, Math.floor(width / pitch))), pitch, width), pitch };
    }
    for (let shelves = 1; shelves <= sizes.length + 1; shelves++) {
      let rows = Math.floor((height / shelves - LABEL - BLOCK_GAP) / pitch);
      if (rows < 1) break;
      let found = shelve(sizes, rows, pitch, width);
      if (found.shelves > shelves) continue;
      for (let lower = found; lower.shelves <= shelves && rows > 1; lower = shelve(sizes, --rows, pitch, width)) found = lower;
      return { ...found, pitch };
    }
  }
}

function shelve(sizes, rows, pitch, width) {
  const blocks = [];
  const most = Math.max(1, Math.floor(width / pitch));
  let x = 0;
  let y = 0;
  let shelves = 1;
  let high = 0;
  for (const size of sizes) {
    const columns = Math.min(Math.max(Math.ceil(size / rows), Math.min(size, 4)), most);
    const wide = Math.max(columns * pitch, Math.min(64, width));
    if (x && x + wide > width) {
      x = 0;
      y += high + LABEL + BLOCK_GAP;
      high = 0;
      shelves += 1;
    }
    const lines = Math.ceil(size / columns);
    blocks.push({ x, y: y + LABEL, columns, lines, size, wide });
    high = Math.max(high, lines * pitch);
    if (lines > rows) shelves += Math.ceil(lines / rows) - 1;
    x += wide + BLOCK_GAP;
  }
  return { blocks, shelves, height: y + LABEL + high };
}

export class LensMap extends HTMLElement {
  constructor() {
    super();
    this.cursor = -1; // place in `order`
    this.zoom = 0; // pixels of a cell; 0: what fits
    this.model = null;
    /** @type {(row: number) => string} */
    this.describe = () => "";
    this.onopen = null;
    this.onlook = null;
  }

  connectedCallback() {
    if (this.canvas) return;
    this.tabIndex = 0;
    this.setAttribute("role", "listbox");
    this.stage = document.createElement("div");
    this.stage.className = "stage";
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.labels = document.createElement("div");
    this.labels.className = "labels";
    this.labels.setAttribute("aria-hidden", "true");
    this.frame = document.createElement("div");
    this.frame.className = "frame";
    this.frame.id = `${this.id || "map"}-cell`;
    this.frame.setAttribute("role", "option");
    this.frame.setAttribute("aria-selected", "true");
    this.frame.hidden = true;
    this.stage.append(this.canvas, this.labels, this.frame);
    this.append(this.stage);
    this.addEventListener("keydown", (event) => this.pressed(event));
    this.addEventListener("focus", () => this.cursor < 0 && this.moveTo(0));
    this.stage.addEventListener("pointermove", (event) => this.hovered(event));
    this.stage.addEventListener("pointerleave", () => this.onlook && this.onlook(this.rowAt(this.cursor)));
    this.stage.addEventListener("click", (event) => this.clicked(event));
    this.watcher = new ResizeObserver(() => this.layout());
    this.watcher.observe(this);
  }

  disconnectedCallback() {
    this.watcher?.disconnect();
    this.watcher = null;
  }

  /** groups: [{title, rows}]; colors, flags, pods by row. */
  show(model) {
    const kept = this.rowAt(this.cursor);
    this.model = model;
    this.order = new Int32Array(model.groups.reduce((sum, one) => sum + one.rows.length, 0));
    let at = 0;
    for (const group of model.groups) for (const row of group.rows) this.order[at++] = row;
    this.cursor = kept >= 0 ? this.order.indexOf(kept) : -1;
    this.layout();
  }

  rowAt(place) {
    return place >= 0 && this.order && place < this.order.length ? this.order[place] : -1;
  }

  layout() {
    if (!this.model || !this.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const width = this.clientWidth;
    const height = parseFloat(getComputedStyle(this).maxHeight) || 400;
    const sizes = this.model.groups.map((one) => one.rows.length);
    let fixed = this.zoom;
    if (fixed) fixed = Math.max(SMALLEST, Math.min(fixed, Math.floor(Math.sqrt(MOST_PIXELS / ratio / ratio / Math.max(this.order.length, 1)))));
    const plan = arrange(sizes, width, height, fixed);
    this.plan = plan;
    this.pitch = plan.pitch;
    this.ratio = ratio;
    const tall = Math.ceil(plan.height);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(tall * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${tall}px`;
    this.stage.style.height = `${tall}px`;
    this.classList.toggle("tall", tall > height);
    this.context = this.canvas.getContext("2d");
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.buffer = new Uint32Array(this.image.data.buffer);
    this.places = new Int32Array(this.model.colors.length).fill(-1);
    this.xs = new Float32Array(this.order.length);
    this.ys = new Float32Array(this.order.length);
    let at = 0;
    plan.blocks.forEach((block, index) => {
      this.model.groups[index].first = at;
      for (let one = 0; one < block.size; one++) {
        this.xs[at] = block.x + (one % block.columns) * plan.pitch;
        this.ys[at] = block.y + Math.floor(one / block.columns) * plan.pitch;
        this.places[this.order[at]] = at;
        at += 1;
      }
    });
    this.labels.replaceChildren(...plan.blocks.map((block, index) => this.label(block, this.model.groups[index])));
    this.paint();
    performance.mark("mooring-map"); // the first is when there is something to see
    if (this.wanted !== undefined) this.cursor = this.places[this.wanted] ?? this.cursor;
    this.wanted = undefined;
    this.moveTo(this.cursor, false);
  }

  label(block, group) {
    const text = document.createElement("span");
    text.textContent = group.title;
    text.title = `${group.title}: ${group.rows.length}`;
    const number = document.createElement("i");
    number.textContent = ` ${group.rows.length.toLocaleString("en-US")}`;
    text.append(number);
    text.style.left = `${block.x}px`;
    text.style.top = `${block.y - LABEL}px`;
    text.style.width = `${block.wide}px`;
    return text;
  }

  /** All cells. */
  paint() {
    if (!this.image) return;
    this.buffer.fill(0);
    for (let place = 0; place < this.order.length; place++) this.fill(place);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Only the cells of these rows. */
  repaint(rows) {
    if (!this.image) return;
    const size = Math.ceil(this.pitch * this.ratio);
    for (const row of rows) {
      const place = this.places[row];
      if (place === undefined || place < 0) continue;
      this.fill(place);
      const x = Math.round(this.xs[place] * this.ratio);
      const y = Math.round(this.ys[place] * this.ratio);
      this.context.putImageData(this.image, 0, 0, x, y, size, size);
    }
    if (this.cursor >= 0 && rows.includes(this.rowAt(this.cursor))) this.tell();
  }

  fill(place) {
    const { colors, flags, pods, mark } = this.model;
    const row = this.order[place];
    const { buffer, ratio } = this;
    const line = this.canvas.width;
    const gap = Math.max(1, Math.round((this.pitch > 7 ? 1 : 0.5) * ratio));
    const size = Math.max(1, Math.round(this.pitch * ratio) - gap);
    const left = Math.round(this.xs[place] * ratio);
    const top = Math.round(this.ys[place] * ratio);
    const color = colors[row];
    const flag = flags ? flags[row] : 0;
    for (let y = 0; y < size; y++) {
      let at = (top + y) * line + left;
      for (let x = 0; x < size; x++) buffer[at++] = color;
    }
    if (flag && size > 3) {
      // Cordoned: stripes. Not ready: a cross. Neither needs colour to be seen.
      for (let y = 0; y < size; y++) {
        const from = (top + y) * line + left;
        if (flag & 2) {
          buffer[from + y] = mark;
          buffer[from + size - 1 - y] = mark;
        } else {
          for (let x = (3 - (y % 4) + 4) % 4; x < size; x += 4) buffer[from + x] = mark;
        }
      }
    }
    if (pods && size >= DOTS_FROM * ratio) this.dots(place, left, top, size, pods[row]);
  }

  /** A dot for each pod, as far as there is room. */
  dots(place, left, top, size, number) {
    const dot = Math.max(2, Math.round(size / 16));
    const step = dot * 2;
    const side = Math.floor((size - dot) / step);
    const line = this.canvas.width;
    for (let one = 0; one < Math.min(number, side * side); one++) {
      const x0 = left + dot + (one % side) * step;
      const y0 = top + dot + Math.floor(one / side) * step;
      for (let y = y0; y < y0 + dot; y++) this.buffer.fill(this.model.mark, y * line + x0, y * line + x0 + dot);
    }
  }

  // --- pointer and keys -------------------------------------------------------------------------

  placeAt(event) {
    if (!this.plan) return -1;
    const bounds = this.stage.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const y = event.clientY - bounds.top;
    for (let index = 0; index < this.plan.blocks.length; index++) {
      const block = this.plan.blocks[index];
      const column = Math.floor((x - block.x) / this.pitch);
      const row = Math.floor((y - block.y) / this.pitch);
      if (column < 0 || row < 0 || column >= block.columns || row >= block.lines) continue;
      const one = row * block.columns + column;
      if (one < block.size) return this.model.groups[index].first + one;
    }
    return -1;
  }

  hovered(event) {
    const place = this.placeAt(event);
    if (this.onlook) this.onlook(this.rowAt(place >= 0 ? place : this.cursor));
  }

  clicked(event) {
    const place = this.placeAt(event);
    if (place < 0) return;
    this.moveTo(place);
    if (this.onopen) this.onopen(this.rowAt(place));
  }

  pressed(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey || !this.order) return;
    if (steps[event.key]) this.moveTo(this.neighbour(...steps[event.key]));
    else if (event.key === "Home") this.moveTo(0);
    else if (event.key === "End") this.moveTo(this.order.length - 1);
    else if (event.key === "Enter" || event.key === " ") this.onopen && this.cursor >= 0 && this.onopen(this.rowAt(this.cursor));
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "0") this.zoomBy(0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  zoomBy(factor) {
    const next = factor ? Math.round((this.zoom || this.pitch || 10) * factor) : 0;
    this.zoom = Math.min(next, 64);
    if (factor && next < SMALLEST) this.zoom = 0;
    this.layout();
  }

  /** The nearest cell in a direction; the same if there is none. */
  neighbour(right, down) {
    const from = Math.max(this.cursor, 0);
    let best = from;
    let least = Infinity;
    for (let place = 0; place < this.order.length; place++) {
      const along = (this.xs[place] - this.xs[from]) * right + (this.ys[place] - this.ys[from]) * down;
      if (along <= 0.5) continue;
      const across = Math.abs((this.xs[place] - this.xs[from]) * down + (this.ys[place] - this.ys[from]) * right);
      const distance = along + across * 3;
      if (distance < least) {
        least = distance;
        best = place;
      }
    }
    return best;
  }

  moveTo(place, reveals = true) {
    this.cursor = this.order && this.order.length ? Math.min(place, this.order.length - 1) : -1;
    this.frame.hidden = this.cursor < 0;
    if (this.cursor < 0) {
      this.removeAttribute("aria-activedescendant");
      return;
    }
    const size = this.pitch;
    this.frame.style.transform = `translate(${this.xs[this.cursor] - 1}px, ${this.ys[this.cursor] - 1}px)`;
    this.frame.style.width = this.frame.style.height = `${size + 1}px`;
    this.setAttribute("aria-activedescendant", this.frame.id);
    this.frame.setAttribute("aria-setsize", String(this.order.length));
    this.frame.setAttribute("aria-posinset", String(this.cursor + 1));
    this.tell();
    if (reveals && this.classList.contains("tall")) this.frame.scrollIntoView({ block: "nearest" });
  }

  tell() {
    const row = this.rowAt(this.cursor);
    this.frame.setAttribute("aria-label", this.describe(row));
    if (this.onlook) this.onlook(row);
  }

  /** Move to the cell of a row, if it is shown. */
  select(row) {
    if (!this.places) this.wanted = row;
    else if (this.places[row] >= 0) this.moveTo(this.places[row]);
  }
}

customElements.define("lens-map", LensMap);
