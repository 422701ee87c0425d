// The canvas of all items: where each one stands, what is seen of them, what the pointer does.

import { classColour, toneOf } from "./paint.js";

const MOST_HEIGHT = 8_000_000; // browsers end an element not far above
const BOX_FROM = 5;
export const SMALLEST = 12, LARGEST = 1400;

export class Grid {
  constructor(scroller, spacer, canvas, look) {
    Object.assign(this, { scroller, spacer, canvas, look });
    this.context = canvas.getContext("2d", { alpha: false });
    this.top = this.native = 0;
    this.tile = 40;
    this.count = 0;
    this.cursor = 0;
    this.direction = 1;
    this.hovered = -1;
    this.columns = 1;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => this.released(event));
    canvas.addEventListener("pointercancel", () => this.dropBox());
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", (event) => this.clicked(event));
    canvas.addEventListener("dblclick", (event) => this.look.opened(this.at(event)));
    canvas.addEventListener("focus", () => this.redraw());
    canvas.addEventListener("blur", () => this.redraw());
    new ResizeObserver(() => this.resized()).observe(scroller);
  }

  // Show other items; the place in them is kept where it can be.
  show(blocks, layout, order, count) {
    Object.assign(this, { blocks, layout, order, count });
    const aspect = layout.kind === "curve" ? 0.5 : layout.height / layout.width;
    this.aspect = Math.min(4, Math.max(0.25, aspect));
    this.cursor = Math.max(0, Math.min(this.cursor, count - 1));
    this.measure();
    this.setTop(Math.min(this.top, this.maxTop));
  }

  itemAt(position) {
    return this.order ? this.order[position] : position;
  }

  // Geometry

  resized() {
    const middle = this.anchor();
    this.measure();
    this.comeBack(middle);
  }

  measure() {
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
    this.pad = this.width < 600 ? 8 : 16;
    const gap = this.tile < 20 ? 1 : this.tile < 64 ? 3 : 8;
    const tile = Math.min(this.tile, this.width - 2 * this.pad);
    const wide = this.aspect > 1 ? tile / this.aspect : tile;
    this.wide = Math.max(2, Math.round(wide));
    this.high = Math.max(2, Math.round(wide * (this.aspect ?? 1)));
    this.caption = this.tile >= 34 && this.look.hasCaptions() ? 16 : 0;
    this.stepX = this.wide + gap;
    this.stepY = this.high + gap + this.caption;
    this.columns = Math.max(1, Math.floor((this.width - 2 * this.pad + gap) / this.stepX));
    this.rows = Math.ceil(this.count / this.columns);
    const used = this.columns * this.stepX - gap;
    this.left = Math.floor((this.width - used) / 2);
    this.total = this.rows * this.stepY + 2 * this.pad;
    this.maxTop = Math.max(0, this.total - this.height);
    const shown = Math.min(this.total, Math.max(MOST_HEIGHT, this.height));
    this.scaled = shown < this.total;
    this.nativeMax = Math.max(0, shown - this.height);
    this.spacer.style.height = `${this.nativeMax}px`;
    this.redraw();
  }

  setTop(top) {
    this.top = Math.max(0, Math.min(top, this.maxTop ?? 0));
    this.sync();
    this.redraw();
  }

  // Put the browser's own scroll bar where we are. Beyond the height that a browser allows, its
  // bar stands for more than its own pixels: small steps are taken as they are, leaps in proportion.
  sync() {
    const native = this.scaled ? (this.top / this.maxTop) * this.nativeMax : this.top;
    this.scroller.scrollTop = native;
    this.native = this.scroller.scrollTop;
  }

  scrolled() {
    const native = this.scroller.scrollTop, delta = native - this.native;
    if (!delta) return;
    this.native = native;
    this.direction = delta;
    const before = this.top;
    if (!this.scaled) this.top = native;
    else if (native <= 0) this.top = 0;
    else if (native >= this.nativeMax - 1) this.top = this.maxTop;
    else if (Math.abs(delta) < 2 * this.height) this.top = Math.max(0, Math.min(this.top + delta, this.maxTop));
    else this.top = (native / this.nativeMax) * this.maxTop;
    if (this.scaled) {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.sync(), 200);
    }
    if (this.top !== before) this.redraw();
  }

  // The item that stays where it is when the size changes, and where it is.
  anchor() {
    if (!this.count || !this.stepY) return null;
    const row = Math.floor(this.cursor / this.columns);
    const y = this.pad + row * this.stepY - this.top;
    if (y > -this.stepY && y < this.height) return { position: this.cursor, y };
    const middle = Math.floor((this.top + this.height / 2 - this.pad) / this.stepY);
    const position = Math.max(0, Math.min(middle * this.columns, this.count - 1));
    return { position, y: this.height / 2 };
  }

  comeBack(anchor) {
    if (!anchor) return this.setTop(this.top);
    const row = Math.floor(anchor.position / this.columns);
    const y = Math.max(0, Math.min(anchor.y, this.height - this.stepY));
    this.setTop(this.pad + row * this.stepY - y);
  }

  zoom(tile) {
    const anchor = this.anchor();
    this.tile = Math.max(SMALLEST, Math.min(LARGEST, Math.round(tile)));
    this.measure();
    this.comeBack(anchor);
    this.look.zoomed(this.tile);
  }

  reveal(position, centred = false) {
    const y = this.pad + Math.floor(position / this.columns) * this.stepY;
    if (centred || y > this.top + 4 * this.height || y < this.top - 4 * this.height) {
      this.setTop(y - (this.height - this.stepY) / 2);
    } else if (y < this.top) this.setTop(y - this.pad);
    else if (y + this.stepY > this.top + this.height) this.setTop(y + this.stepY - this.height + this.pad);
    this.redraw();
  }

  rowsOnScreen() {
    return Math.max(1, Math.floor(this.height / this.stepY));
  }

  // The pointer

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  at(event) {
    const { x, y } = this.place(event);
    const column = Math.floor((x - this.left) / this.stepX);
    const row = Math.floor((y + this.top - this.pad) / this.stepY);
    const position = row * this.columns + column;
    const inside = column >= 0 && column < this.columns && row >= 0 && position < this.count;
    return inside ? position : -1;
  }

  wheeled(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.zoom(this.tile * Math.exp(-event.deltaY / 300));
  }

  pressed(event) {
    if (event.pointerType === "touch" || event.button !== 0) return;
    const { x, y } = this.place(event);
    this.box = { x, y: y + this.top, toX: x, toY: y + this.top, drawn: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  moved(event) {
    const { x, y } = this.place(event);
    if (!this.box) return this.hover(this.at(event));
    this.box.atX = x;
    this.box.atY = y;
    if (!this.box.drawn && Math.hypot(x - this.box.x, y + this.top - this.box.y) < BOX_FROM) return;
    if (!this.box.drawn) this.growBox();
    this.box.drawn = true;
    this.redraw();
  }

  // While a box is drawn beyond an edge, the items move under it.
  growBox() {
    requestAnimationFrame(() => {
      if (!this.box) return;
      const { atY } = this.box;
      if (atY < 0) this.setTop(this.top + Math.max(-40, atY / 2));
      if (atY > this.height) this.setTop(this.top + Math.min(40, (atY - this.height) / 2));
      this.growBox();
    });
  }

  released(event) {
    const box = this.box;
    this.box = null;
    if (!box?.drawn) return;
    this.boxed = true; // the click that follows is none
    const { x, y } = this.place(event);
    const [left, right] = [Math.min(x, box.x), Math.max(x, box.x)];
    const [top, bottom] = [Math.min(y + this.top, box.y), Math.max(y + this.top, box.y)];
    const positions = [];
    const firstRow = Math.max(0, Math.floor((top - this.pad) / this.stepY));
    const lastRow = Math.min(this.rows - 1, Math.floor((bottom - this.pad) / this.stepY));
    const first = Math.max(0, Math.floor((left - this.left) / this.stepX));
    const last = Math.min(this.columns - 1, Math.floor((right - this.left) / this.stepX));
    for (let row = firstRow; row <= lastRow; row++) {
      for (let column = first; column <= last; column++) {
        const position = row * this.columns + column;
        if (position < this.count) positions.push(position);
      }
    }
    this.look.boxed(positions, event);
    this.redraw();
  }

  dropBox() {
    this.box = null;
    this.redraw();
  }

  clicked(event) {
    if (this.boxed) {
      this.boxed = false;
      return;
    }
    this.look.clicked(this.at(event), event);
  }

  hover(position) {
    if (position === this.hovered) return;
    this.hovered = position;
    this.look.hovered(position);
    this.redraw();
  }

  // Drawing

  colours() {
    const style = getComputedStyle(this.canvas);
    return {
      ink: style.color,
      ground: style.backgroundColor,
      accent: style.caretColor,
      tile: style.columnRuleColor,
      warn: style.textEmphasisColor,
    };
  }

  themed() {
    this.palette = null;
    this.redraw();
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      if (this.blocks) this.draw();
    });
  }

  draw() {
    const { context, blocks, ratio, columns, stepX, stepY, wide, high, layout } = this;
    const palette = (this.palette ??= this.colours());
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, this.width, this.height);
    if (!this.count) return this.drawn(true);
    const firstRow = Math.max(0, Math.floor((this.top - this.pad) / stepY));
    const lastRow = Math.min(this.rows - 1, Math.floor((this.top + this.height - this.pad) / stepY));
    const first = firstRow * columns, last = Math.min(this.count, (lastRow + 1) * columns) - 1;
    blocks.want(Math.floor(first / blocks.size), Math.floor(last / blocks.size), this.direction);
    context.imageSmoothingEnabled = wide * ratio < layout.width;
    context.imageSmoothingQuality = "medium";
    let number = -1, block = null, complete = true;
    const numbers = layout.kind === "picture" && layout.step === 1 && wide / layout.width >= 20;
    for (let position = first; position <= last; position++) {
      const of = Math.floor(position / blocks.size);
      if (of !== number) {
        number = of;
        block = blocks.get(of);
        if (!block) complete = false;
      }
      const x = this.left + (position % columns) * stepX;
      const y = Math.round(this.pad + Math.floor(position / columns) * stepY - this.top);
      if (!block) {
        context.fillStyle = palette.tile;
        context.fillRect(x, y, wide, high);
        continue;
      }
      const index = position - of * blocks.size;
      if (layout.kind === "number") {
        this.drawNumber(context, block.values[index], x, y, palette);
      } else {
        const across = index % block.across, down = Math.floor(index / block.across);
        context.drawImage(block.bitmap, across * layout.width, down * layout.height,
          layout.width, layout.height, x, y, wide, high);
      }
      if (numbers) this.drawValues(context, block.values, index * layout.size, x, y);
    }
    this.drawMarks(context, first, last, palette);
    if (this.box?.drawn) this.drawBox(context, palette);
    this.drawn(complete);
  }

  drawn(complete) {
    this.canvas.dataset.painted = complete ? "all" : "some";
    if (complete && this.count && !this.marked) {
      this.marked = true;
      performance.mark("first-tiles");
    }
    this.look.drawn(complete);
  }

  drawNumber(context, value, x, y, palette) {
    const whole = Number.isInteger(value);
    context.fillStyle = whole ? classColour(value, 40) : palette.tile;
    context.fillRect(x, y, this.wide, this.high);
    if (this.wide < 20) return;
    context.fillStyle = whole ? "#fff" : palette.ink;
    context.font = `600 ${Math.min(28, Math.round(this.wide * 0.42))}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const text = whole ? String(value) : String(Number(value.toPrecision(3)));
    context.fillText(text, x + this.wide / 2, y + this.high / 2 + 1, this.wide - 4);
  }

  // So near that every pixel has room for its value.
  drawValues(context, values, base, x, y) {
    const { width, height, offsets, channels } = this.layout;
    const side = this.wide / width, { low, scale } = toneOf(this.look.window(), false);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${Math.min(13, side * 0.42)}px ui-monospace, monospace`;
    for (let row = 0, n = 0; row < height; row++) {
      const middle = y + (row + 0.5) * side;
      if (middle < 0 || middle > this.height) {
        n += width;
        continue;
      }
      for (let column = 0; column < width; column++, n++) {
        if (offsets[n] < 0) continue;
        const value = values[base + offsets[n]];
        const bright = (value - low) * scale > 140 !== this.look.inverted();
        context.fillStyle = bright ? "#000" : "#fff";
        const text = Number.isInteger(value) ? String(value) : value.toPrecision(2);
        context.fillText(channels === 1 ? text : `${text}…`, x + (column + 0.5) * side, middle, side - 2);
      }
    }
  }

  drawMarks(context, first, last, palette) {
    const { columns, stepX, stepY, wide, high, look } = this;
    const focused = document.activeElement === this.canvas;
    context.textBaseline = "top";
    context.textAlign = "center";
    const shown = Math.max(1, Math.floor(wide / 6));
    for (let position = first; position <= last; position++) {
      const x = this.left + (position % columns) * stepX;
      const y = Math.round(this.pad + Math.floor(position / columns) * stepY - this.top);
      const item = this.itemAt(position);
      const mark = look.mark(item);
      if (this.caption) {
        const text = look.caption(item);
        context.font = "11px system-ui, sans-serif";
        context.fillStyle = mark ? palette.warn : palette.ink;
        context.globalAlpha = mark ? 1 : 0.72;
        context.fillText(text.length > shown ? `${text.slice(0, Math.max(1, shown - 1))}…` : text,
          x + wide / 2, y + high + 4);
        context.globalAlpha = 1;
      }
      if (mark) {
        context.fillStyle = palette.warn;
        const side = Math.max(4, Math.min(9, wide / 5));
        context.beginPath();
        context.moveTo(x + wide - side, y);
        context.lineTo(x + wide, y);
        context.lineTo(x + wide, y + side);
        context.fill();
      }
      if (look.isChosen(item)) {
        context.fillStyle = palette.accent;
        context.globalAlpha = 0.28;
        context.fillRect(x, y, wide, high);
        context.globalAlpha = 1;
        context.strokeStyle = palette.accent;
        context.lineWidth = 2;
        context.strokeRect(x, y, wide, high);
      }
      if (position === this.cursor) this.frame(context, x, y, focused ? 3 : 2, palette);
      else if (position === this.hovered) {
        context.strokeStyle = palette.ink;
        context.lineWidth = 1;
        context.strokeRect(x - 0.5, y - 0.5, wide + 1, high + 1);
      }
    }
  }

  frame(context, x, y, width, palette) {
    context.lineWidth = width + 2;
    context.strokeStyle = palette.ground;
    context.strokeRect(x - 1, y - 1, this.wide + 2, this.high + 2);
    context.lineWidth = width;
    context.strokeStyle = palette.accent;
    context.strokeRect(x - 1, y - 1, this.wide + 2, this.high + 2);
  }

  drawBox(context, palette) {
    const { x, y, atX, atY } = this.box;
    context.strokeStyle = context.fillStyle = palette.accent;
    context.lineWidth = 1;
    context.globalAlpha = 0.12;
    context.fillRect(x, y - this.top, atX - x, atY - (y - this.top));
    context.globalAlpha = 1;
    context.strokeRect(x, y - this.top, atX - x, atY - (y - this.top));
  }
}
