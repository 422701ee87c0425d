// Blocks of items: fetched, decoded and painted once, kept while they are near.

import { decoded } from "./idx.js";
import { paintItem } from "./paint.js";

const ACROSS = 32;
const MOST_ITEMS_A_BLOCK = 512;
const MOST_TEXELS_A_BLOCK = 1 << 20;
const MOST_BYTES_A_BLOCK = 1 << 22;
const MOST_BYTES_KEPT = 1 << 26;
const AT_ONCE = 4;

export class Blocks {
  constructor(source, layout, dtype, itemBytes, tone, changed) {
    Object.assign(this, { source, layout, dtype, tone, changed });
    const texels = layout.width * layout.height;
    const most = Math.min(MOST_TEXELS_A_BLOCK / texels, MOST_BYTES_A_BLOCK / Math.max(1, itemBytes));
    this.size = Math.max(1, Math.min(MOST_ITEMS_A_BLOCK, Math.floor(most)));
    this.across = Math.min(ACROSS, this.size);
    this.kept = new Map(); // in the order of their last use
    this.fetching = new Map();
    this.wanted = [];
    this.bytes = 0;
    this.fault = null;
  }

  // Another order of items (null: as they lie), or another number of them.
  reorder(order, count) {
    this.order = order;
    this.count = count;
    this.clear();
  }

  clear() {
    for (const controller of this.fetching.values()) controller.abort();
    this.fetching.clear();
    for (const block of this.kept.values()) block.bitmap.close();
    this.kept.clear();
    this.bytes = 0;
    this.fault = null;
    this.pass = (this.pass ?? 0) + 1;
  }

  // The block with this position, if it is there: {bitmap, values, across}.
  get(number) {
    const block = this.kept.get(number);
    if (block) {
      this.kept.delete(number);
      this.kept.set(number, block);
    }
    return block;
  }

  // What is looked at: these blocks first, then their neighbours; nothing else is fetched on.
  want(first, last, direction) {
    const end = Math.ceil(this.count / this.size) - 1;
    const wanted = [];
    for (let n = first; n <= Math.min(last, end); n++) wanted.push(n);
    const ahead = direction < 0 ? first - 1 : last + 1;
    const seen = wanted.every((n) => this.kept.has(n)); // the neighbour waits for what is looked at
    if (seen && ahead >= 0 && ahead <= end) wanted.push(ahead);
    this.wanted = wanted;
    const keep = new Set(wanted);
    for (const [number, controller] of this.fetching) {
      if (!keep.has(number)) {
        controller.abort();
        this.fetching.delete(number);
      }
    }
    this.fetchMore();
  }

  fetchMore() {
    for (const number of this.wanted) {
      if (this.fetching.size >= AT_ONCE) return;
      if (!this.kept.has(number) && !this.fetching.has(number)) this.fetchOne(number);
    }
  }

  itemsOf(number) {
    const start = number * this.size, stop = Math.min(start + this.size, this.count);
    if (this.order) return this.order.subarray(start, stop);
    return Uint32Array.from({ length: stop - start }, (_, n) => start + n);
  }

  async fetchOne(number) {
    const controller = new AbortController();
    const pass = this.pass;
    this.fetching.set(number, controller);
    try {
      const items = this.itemsOf(number);
      const buffer = await this.source.items(items, controller.signal);
      if (controller.signal.aborted) return;
      const values = decoded(buffer, this.dtype);
      const bitmap = await this.paint(values, items.length);
      if (pass !== this.pass || this.kept.has(number)) return bitmap.close();
      this.keep(number, { bitmap, values, across: this.across });
      this.changed();
    } catch (fault) {
      if (!controller.signal.aborted) {
        this.fault = fault;
        this.changed();
      }
    } finally {
      if (this.fetching.get(number) === controller) this.fetching.delete(number);
      if (!this.fault && pass === this.pass) this.fetchMore();
    }
  }

  paint(values, count) {
    const { width, height, size } = this.layout;
    const rows = Math.ceil(count / this.across);
    const [wide, high] = [this.across * width, Math.max(1, rows) * height];
    // One image serves all blocks: a bitmap takes its own copy at once.
    if (this.image?.width !== wide || this.image.height !== high) this.image = new ImageData(wide, high);
    const { image } = this;
    const pixels = new Uint32Array(image.data.buffer);
    for (let n = 0; n < count; n++) {
      const at = Math.floor(n / this.across) * height * image.width + (n % this.across) * width;
      paintItem(pixels, at, image.width, values, n * size, this.layout, this.tone);
    }
    return createImageBitmap(image);
  }

  // Paint again what is there, with other shades.
  async repaint(tone) {
    this.tone = tone;
    const pass = this.pass;
    for (const [number, block] of [...this.kept]) {
      const bitmap = await this.paint(block.values, block.values.length / Math.max(1, this.layout.size));
      if (pass !== this.pass || this.kept.get(number) !== block) return bitmap.close();
      block.bitmap.close();
      block.bitmap = bitmap;
    }
    this.changed();
  }

  keep(number, block) {
    const cost = ({ bitmap, values }) => bitmap.width * bitmap.height * 4 + values.byteLength;
    this.kept.set(number, block);
    this.bytes += cost(block);
    const near = new Set(this.wanted);
    for (const [other, old] of this.kept) {
      if (this.bytes <= MOST_BYTES_KEPT) break;
      if (near.has(other)) continue;
      this.kept.delete(other);
      this.bytes -= cost(old);
      old.bitmap.close();
    }
  }
}
