// The selection: which items, what is done with them, and the journal of new labels.

import { byId, counted, download, make } from "./elements.js";

export class Chosen {
  constructor(app) {
    this.app = app;
    this.marks = new Uint8Array(0);
    this.count = 0;
  }

  fit(count) {
    this.marks = new Uint8Array(count);
    this.count = 0;
  }

  has(item) {
    return this.marks[item] === 1;
  }

  set(item, on) {
    if (item < 0 || (this.marks[item] === 1) === on) return;
    this.marks[item] = on ? 1 : 0;
    this.count += on ? 1 : -1;
  }

  toggle(item) {
    this.set(item, !this.has(item));
    this.changed();
  }

  // These items, and the others besides or no longer.
  take(items, besides = false) {
    if (!besides) this.clear(false);
    for (const item of items) this.set(item, true);
    this.changed();
  }

  clear(tell = true) {
    if (this.count) this.marks.fill(0);
    this.count = 0;
    if (tell) this.changed();
  }

  all() {
    const { order, facts } = this.app;
    if (!order) {
      this.marks.fill(1);
      this.count = facts.count;
    } else for (const item of order) this.set(item, true);
    this.changed();
  }

  // The selection as runs of neighbours, [[start, stop], …].
  runs() {
    const runs = [];
    const { marks } = this;
    for (let n = marks.indexOf(1); n >= 0;) {
      const stop = marks.indexOf(0, n);
      runs.push([n, stop < 0 ? marks.length : stop]);
      n = stop < 0 ? -1 : marks.indexOf(1, stop);
    }
    return runs;
  }

  items() {
    return this.runs().flatMap(([start, stop]) => Array.from({ length: stop - start }, (_, n) => start + n));
  }

  changed() {
    const badge = byId("chosen-count");
    badge.hidden = !this.count;
    badge.textContent = this.count > 9999 ? `${Math.round(this.count / 1000)}k` : this.count;
    this.told.textContent = this.count ? `${counted(this.count, "item")} selected` : "Nothing selected";
    for (const element of this.needy) element.disabled = !this.count;
    this.app.grid?.redraw();
    this.app.tally();
  }

  build() {
    const { app } = this;
    const { facts, source } = app;
    this.told = make("p", { className: "strong", role: "status" });
    this.outcome = make("p", { className: "outcome", role: "status" });
    const clear = make("button", { type: "button", onclick: () => this.clear() }, "Clear");
    const all = make("button", { type: "button", onclick: () => this.all() }, "Select all shown");
    this.needy = [clear];
    const parts = [make("h2", {}, "Selection"), this.told, make("p", { className: "buttons" }, all, clear)];
    if (source.alive && facts.labelled) parts.push(this.relabelForm());
    if (source.alive) parts.push(this.saveForm(), this.sheetForm());
    parts.push(this.listButtons(), this.outcome);
    byId("panel-chosen").replaceChildren(...parts);
  }

  relabelForm() {
    this.label = make("input", { id: "new-label", size: 6, autocomplete: "off", placeholder: "label", "aria-label": "New label of the selected items" });
    const give = make("button", { type: "submit", className: "main" }, "Give");
    this.undoButton = make("button", { type: "button", onclick: () => this.undo() }, "Undo");
    this.journalNote = make("p", { className: "quiet" });
    this.needy.push(give, this.label);
    const form = make("form", { className: "part" }, make("h3", {}, "New label"),
      make("p", { className: "row" }, this.label, give, this.undoButton), this.journalNote);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.relabel();
    });
    return form;
  }

  showJournal({ lines, file, passed_over: passedOver, now }) {
    if (!this.journalNote) return;
    const open = now.filter(([, label, stored]) => label !== stored).length;
    this.undoButton.disabled = !lines;
    this.journalNote.textContent = `${open ? `${counted(open, "item")} changed. ` : ""}The file stays as it is: changes are kept ${file ? `in ${file.split("/").at(-1)}` : "while the server runs"}, and saved with a new pair.`
      + (passedOver ? ` ${counted(passedOver, "line")} there could not be understood.` : "");
  }

  async relabel() {
    const label = this.app.names.labelNamed(this.label.value.trim());
    if (label === null || !this.count) {
      this.tell(this.count ? "A label is a whole number, or the name of a class." : "Select items first.", true);
      return;
    }
    await this.attempt(async () => {
      this.app.journalled(await this.app.source.post("relabel", { items: this.runs(), label }));
      this.tell(`${counted(this.count, "item")}: ${this.app.names.classOf(label)}`);
    });
  }

  async undo() {
    await this.attempt(async () => {
      const journal = await this.app.source.post("undo", {});
      this.app.journalled(journal);
      this.tell(journal.undone.length ? `${counted(journal.undone.length, "item")} as before` : "Nothing to undo");
    });
  }

  saveForm() {
    const name = make("input", { required: true, placeholder: "name of a new folder", "aria-label": "Name of the new folder", id: "save-name" });
    const codec = make("select", { "aria-label": "Compression" },
      ...[["", "raw"], ["gz", "gz"], ["xz", "xz"], ["zst", "zst"]].map(([value, text]) => make("option", { value }, text)));
    const save = make("button", { type: "submit", className: "main" }, "Save");
    this.needy.push(save);
    const form = make("form", { className: "part" }, make("h3", {}, "Save as a new pair"), make("p", { className: "row" }, name, codec, save),
      make("p", { className: "quiet" }, "Into ", make("code", {}, this.app.facts.folder), ". Nothing is written over."));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await this.attempt(async () => {
        const { path, items } = await this.app.source.post("save", { items: this.runs(), name: name.value.trim(), codec: codec.value });
        this.tell(`${counted(items, "item")} saved: ${path}`);
      });
    });
    return form;
  }

  sheetForm() {
    if (this.app.layout.kind !== "picture") return "";
    const columns = make("input", { inputMode: "numeric", size: 4, placeholder: "auto", "aria-label": "Pictures side by side" });
    const sheet = make("button", { type: "submit" }, "PNG sheet");
    this.needy.push(sheet);
    const form = make("form", { className: "part" }, make("h3", {}, "Contact sheet"), make("p", { className: "row" }, make("label", {}, "Columns ", columns), sheet));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await this.attempt(async () => {
        const wanted = Number.parseInt(columns.value, 10) || null;
        const answer = await this.app.source.post("sheet", { items: this.runs(), columns: wanted }, "ask");
        download("sheet.png", await answer.blob());
      });
    });
    return form;
  }

  listButtons() {
    const text = () => this.items().map((item) => this.app.names.numberOf(item)).join("\n") + "\n";
    const list = make("button", { type: "button", onclick: () => download("items.txt", new Blob([text()], { type: "text/plain" })) }, "List of numbers");
    const copy = make("button", { type: "button", onclick: () => this.attempt(async () => { await navigator.clipboard.writeText(text()); this.tell("Copied"); }) }, "Copy them");
    this.needy.push(list, copy);
    return make("section", { className: "part" }, make("h3", {}, "Item numbers"), make("p", { className: "buttons" }, list, copy));
  }

  async attempt(work) {
    try {
      await work();
    } catch (fault) {
      this.tell(fault.message, true);
    }
  }

  tell(text, bad = false) {
    this.outcome.textContent = text;
    this.outcome.classList.toggle("fault", bad);
  }
}
