// Which item is looked at, and how one gets to another: keys, clicks, numbers.

import { byId } from "./elements.js";

export class Cursor {
  constructor(app) {
    this.app = app;
    this.pivot = null; // where a selection by keys began
  }

  move(position, selecting) {
    const { grid, chosen } = this.app;
    if (!grid.count) return;
    const to = Math.max(0, Math.min(position, grid.count - 1));
    if (selecting) {
      this.pivot ??= grid.cursor;
      chosen.take(this.between(this.pivot, to));
    } else this.pivot = null;
    grid.direction = to - grid.cursor;
    grid.cursor = to;
    grid.reveal(to);
    this.moved();
  }

  between(from, to) {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    return Array.from({ length: last - first + 1 }, (_, n) => this.app.grid.itemAt(first + n));
  }

  moved() {
    const { grid } = this.app;
    if (!grid.count) {
      byId("status").textContent = "";
      return;
    }
    const item = grid.itemAt(grid.cursor);
    const name = this.app.names.of(item);
    byId("status").textContent = name[0].toUpperCase() + name.slice(1) + (this.app.chosen.has(item) ? ", selected" : "");
    this.app.itemPanel.show(item);
    this.app.state.item = item || undefined;
    this.app.changedState();
    this.app.tally();
  }

  goTo(item) {
    const { grid, order } = this.app;
    const position = order ? order.indexOf(item) : item;
    if (position < 0 || position >= grid.count) return false;
    grid.cursor = position;
    grid.reveal(position, true);
    this.moved();
    return true;
  }

  jump(text) {
    let item = Number(text.replaceAll(/[,\s._]/g, ""));
    if (!Number.isInteger(item)) return false;
    if (item < 0) item += this.app.facts.count;
    if (this.app.facts.numbers) item = this.app.facts.numbers.indexOf(item);
    if (this.goTo(item)) return true;
    if (item < 0 || item >= this.app.facts.count) return false;
    this.app.query.showAll(); // it is not among those shown
    return this.goTo(item);
  }

  clicked(position, event) {
    if (position < 0) {
      this.app.chosen.clear();
      return;
    }
    const { grid, chosen } = this.app;
    const item = grid.itemAt(position);
    const touch = event.pointerType === "touch";
    if (event.shiftKey) chosen.take(this.between(grid.cursor, position), event.ctrlKey || event.metaKey);
    else if (event.ctrlKey || event.metaKey) chosen.toggle(item);
    else if (!touch) chosen.take([item]);
    if (!event.shiftKey) grid.cursor = position;
    this.pivot = null;
    this.moved();
    grid.redraw();
    if (touch) this.app.panels.open("item");
  }
}
