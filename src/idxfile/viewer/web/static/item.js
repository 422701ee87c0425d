// One item: its picture, what is known of it, all of its values.

import { byId, factList, make, shortNumber } from "./elements.js";
import { decoded } from "./idx.js";
import { paintCanvas, toneOf } from "./paint.js";

const MOST_VALUES = 20_000;
const NAMES = {
  mean: "Mean",
  ink: "Ink",
  asymmetry: "Asymmetry",
  unusual: "Unusual",
};

export class ItemPanel {
  constructor(app) {
    this.app = app;
    this.canvas = make("canvas", { className: "picture", role: "img" });
    this.facts = make("div");
    this.actions = make("p", { className: "buttons" });
    this.frame = make("button", { type: "button", className: "picture-frame", "aria-label": "All values of this item", title: "All values: Enter", onclick: () => this.open() }, this.canvas);
    byId("panel-item").append(this.frame, this.facts, this.actions);
    byId("closeup").addEventListener("close", () => app.grid.canvas.focus());
  }

  async show(item) {
    const { app } = this;
    this.item = item;
    clearTimeout(this.waiting);
    this.describe(null);
    this.waiting = setTimeout(() => this.load(item), 40); // who runs over many needs none of them
  }

  async load(item) {
    const { app } = this;
    try {
      const [buffer, known] = await Promise.all([
        app.source.items([item]),
        app.source.alive ? app.source.item(item) : null,
      ]);
      if (this.item !== item) return;
      this.values = decoded(buffer, app.facts.dtype);
      this.repaint();
      this.describe(known);
      if (byId("closeup").open) this.fill();
    } catch (fault) {
      this.facts.replaceChildren(make("p", { className: "fault" }, fault.message));
    }
  }

  repaint() {
    const { layout, facts, state } = this.app;
    this.frame.hidden = layout.kind === "number"; // it stands below, as text
    if (!this.values) return;
    paintCanvas(this.canvas, this.values, layout, toneOf(facts.window, Boolean(state.invert)));
    this.canvas.setAttribute("aria-label", `Picture of item ${this.app.names.numberOf(this.item)}`);
    this.canvas.classList.toggle("tall", layout.height > layout.width);
  }

  describe(known) {
    const { app, item } = this;
    const label = app.names.labelOf(item), other = app.names.otherOf(item);
    const stored = known?.stored;
    const rows = [["Item", app.names.numberOf(item).toLocaleString("en")]];
    if (app.order) rows.push(["Position", (app.grid.cursor + 1).toLocaleString("en")]);
    if (label !== null) rows.push(["Label", app.names.classOf(label)]);
    if (stored && stored[0] !== label) rows.push(["In the file", app.names.classOf(stored[0])]);
    if (stored?.length > 1) rows.push(["All columns", stored.join(" ")]);
    if (other !== null) rows.push([app.names.rival(), app.names.classOf(other)]);
    if (app.layout.kind === "number" && this.values && !app.facts.alone) rows.push(["Value", String(this.values[0])]);
    for (const [name, value] of Object.entries((!app.facts.alone && known?.figures) || {})) rows.push([NAMES[name], shortNumber(value)]);
    this.facts.replaceChildren(factList(rows));
    const chosen = app.chosen.has(item);
    const buttons = [
      make("button", { type: "button", onclick: () => this.open() }, "All values"),
      make("button", { type: "button", "aria-pressed": String(chosen), onclick: () => { app.chosen.toggle(item); this.describe(known); } }, chosen ? "Selected" : "Select"),
    ];
    if (label !== null && app.source.alive && app.layout.kind !== "number") {
      buttons.push(make("button", { type: "button", onclick: () => app.query.mostUnusual(label) }, `Most unusual of ${app.names.classOf(label)}`));
    }
    this.actions.replaceChildren(...buttons);
  }

  open() {
    if (this.item === undefined || this.item < 0) return;
    this.fill();
    const dialog = byId("closeup");
    if (!dialog.open) dialog.showModal();
    byId("closeup-values").focus();
  }

  fill() {
    const { app, item, values } = this;
    const label = app.names.labelOf(item);
    byId("closeup-name").textContent = `Item ${app.names.numberOf(item).toLocaleString("en")}`
      + (label === null ? "" : `, label ${app.names.classOf(label)}`);
    if (values) byId("closeup-values").replaceChildren(this.table());
  }

  // The values as a table whose cells are the pixels: every number can be selected and copied.
  table() {
    const { layout, facts, state } = this.app;
    const { values } = this;
    if (values.length > MOST_VALUES) {
      const large = make("canvas", { className: "picture large" });
      paintCanvas(large, values, layout, toneOf(facts.window, Boolean(state.invert)));
      return make("div", {}, large, make("p", { className: "quiet" }, `${values.length.toLocaleString("en")} values are too many for a table.`));
    }
    const { channels = 1 } = layout;
    const columns = layout.columns ?? (layout.kind === "curve" ? 16 : 1);
    const { low, scale } = toneOf(facts.window, false);
    const rows = [];
    for (let start = 0, row = 0; start < values.length; start += columns * channels, row++) {
      const cells = [make("th", { scope: "row" }, String(layout.kind === "curve" ? start : row % (layout.rows ?? 1)))];
      for (let n = start; n < Math.min(start + columns * channels, values.length); n += channels) {
        const some = Array.from(values.subarray(n, n + channels));
        const shades = some.map((value) => Math.max(0, Math.min(255, Math.round((value - low) * scale) || 0)))
          .map((shade) => (state.invert ? 255 - shade : shade));
        const [red, green = red, blue = red] = shades;
        const cell = make("td", {}, some.map((value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3))))).join(" "));
        cell.style.backgroundColor = `rgb(${red} ${green} ${blue})`;
        cell.style.color = 0.3 * red + 0.59 * green + 0.11 * blue > 130 ? "#000" : "#fff";
        cells.push(cell);
      }
      rows.push(make("tr", { className: layout.slices > 1 && row && row % layout.rows === 0 ? "slice" : "" }, ...cells));
    }
    return make("table", { className: "values" }, make("tbody", {}, ...rows));
  }
}
