// Figures of all items: counted by the server meanwhile, and asked for until they are there.

import { byId, make } from "./elements.js";
import { decoded } from "./idx.js";

const POLL_MS = 400;

export class Counting {
  constructor(app) {
    this.app = app;
    this.forget();
  }

  forget() {
    this.figures = this.means = null;
  }

  async poll() {
    const { source } = this.app;
    if (!source.alive || this.polling) return;
    this.polling = true;
    const { set } = source;
    try {
      for (;;) {
        const figures = await source.figures();
        if (source.set !== set) break;
        await this.got(figures);
        if (figures.state !== "running") break;
        await new Promise((done) => setTimeout(done, POLL_MS));
      }
    } catch { /* the server has ended */ }
    this.polling = false;
    if (source.set !== set) this.poll();
  }

  async got(figures) {
    const { app } = this;
    const before = this.figures;
    this.figures = figures;
    this.tell(figures);
    app.numbers.showFigures(figures);
    if (figures.means.length && !before?.means.length) {
      this.means = decoded(await app.source.means(), "float32");
      this.showMeans();
    }
    if (figures.state === "ready" && before?.state === "running" && app.grid.count) app.itemPanel.show(app.grid.itemAt(app.grid.cursor));
  }

  tell(figures) {
    const { source, facts } = this.app;
    const place = byId("counting");
    if (figures.state === "running") place.textContent = `Counting … ${Math.round(100 * figures.done)} %`;
    else if (figures.state === "failed") place.textContent = `Counting ended: ${figures.fault}`;
    else if (figures.state === "none" && facts.dtype) {
      place.replaceChildren(make("button", { type: "button", onclick: async () => { await source.startFigures(); this.poll(); } }, "Count all values"));
    } else place.textContent = "";
  }

  // The mean item of each class, beside its name.
  showMeans() {
    const { names, classPart } = this.app;
    if (this.means && this.figures && names.labels) classPart.means(this.figures.means, this.means);
  }
}
