// The classes: a button each, with its share, its mean item and its name.

import { byId, make } from "./elements.js";
import { paintCanvas, toneOf } from "./paint.js";

export class Classes {
  constructor(app) {
    this.app = app;
    this.buttons = new Map();
    byId("classes-clear").addEventListener("click", () => app.query.chooseClasses([]));
  }

  // The counts by now: [[label, count], …].
  show(counts) {
    byId("class-part").hidden = !counts?.length;
    if (!counts?.length) return;
    const known = counts.map(([label]) => label).join();
    if (known !== this.known) {
      this.known = known;
      this.buttons.clear();
      byId("classes").replaceChildren(...counts.map(([label]) => this.button(label)));
    }
    const most = Math.max(...counts.map(([, count]) => count));
    for (const [label, count] of counts) {
      const { button, bar, number } = this.buttons.get(label);
      number.textContent = count.toLocaleString("en");
      bar.style.width = `${(100 * count) / most}%`;
      button.setAttribute("aria-label", `Class ${this.app.names.classOf(label)}, ${count} items`);
    }
    this.press();
  }

  button(label) {
    const mean = make("canvas", { className: "mean", width: 1, height: 1, "aria-hidden": "true" });
    const number = make("span", { className: "count" });
    const bar = make("i", { className: "bar" });
    const button = make("button", { type: "button", title: "Click: only this class; Shift or Ctrl: add it" },
      mean, make("span", { className: "class-name" }, this.app.names.classOf(label)), number,
      make("span", { className: "track", "aria-hidden": "true" }, bar));
    button.addEventListener("click", (event) => {
      this.app.query.toggleClass(label, event.shiftKey || event.ctrlKey || event.metaKey);
    });
    this.buttons.set(label, { button, bar, number, mean });
    return button;
  }

  press() {
    const chosen = new Set(this.app.query.classes());
    byId("classes-clear").hidden = !chosen.size;
    for (const [label, { button }] of this.buttons) {
      button.setAttribute("aria-pressed", String(chosen.has(label)));
    }
  }

  // The mean item of each class, of one array of them all.
  means(labels, values) {
    const { layout, facts, state } = this.app;
    labels.forEach((label, n) => {
      const mean = this.buttons.get(label)?.mean;
      if (!mean || layout.kind === "number") return;
      paintCanvas(mean, values, layout, toneOf(facts.window, Boolean(state.invert)), n * layout.size);
      mean.classList.add("there");
    });
  }
}
