// Which items are shown, and in which order: the form, the classes, and the answer of the source.

import { byId, make } from "./elements.js";
import { NotYet } from "./source.js";
import { classesOf, isNatural, queryOf } from "./state.js";

const COLUMNS = ["mean", "ink", "asymmetry", "unusual"];
const FIELDS = ["where", "from", "to", "sort", "seed"];
const ASK_AGAIN_MS = 400;

export class Query {
  constructor(app) {
    this.app = app;
    this.pass = 0;
    byId("query").addEventListener("submit", (event) => {
      event.preventDefault();
      this.readForm();
    });
    byId("query").addEventListener("reset", (event) => {
      event.preventDefault();
      this.showAll();
    });
    byId("sort").addEventListener("change", () => this.readForm());
  }

  classes() {
    return classesOf(this.app.state);
  }

  chooseClasses(classes) {
    this.app.state.classes = classes.join(",") || undefined;
    this.apply();
  }

  toggleClass(label, besides) {
    const now = this.classes();
    if (besides) this.chooseClasses(now.includes(label) ? now.filter((other) => other !== label) : [...now, label].sort((a, b) => a - b));
    else this.chooseClasses(now.length === 1 && now[0] === label ? [] : [label]);
  }

  showWhere(where) {
    Object.assign(this.app.state, { where, classes: undefined, from: undefined, to: undefined });
    this.apply();
  }

  mostUnusual(label) {
    Object.assign(this.app.state, { classes: String(label), sort: "-unusual", where: undefined });
    this.apply();
  }

  showAll() {
    for (const name of ["classes", ...FIELDS]) delete this.app.state[name];
    this.apply();
  }

  // Show what the state asks for; the last of several calls counts.
  async apply(tell = true) {
    const { app } = this;
    const pass = ++this.pass;
    this.fillForm();
    app.classPart.press();
    let order = null;
    if (!isNatural(app.state)) {
      order = await this.patiently(() => app.source.order(queryOf(app.state)), () => pass === this.pass);
      if (pass !== this.pass) return;
      if (order === undefined) order = app.order;
    }
    app.reorder(order, tell);
  }

  // Ask again while the figures that it needs are being counted.
  async patiently(ask, stillWanted) {
    const fault = byId("query-fault");
    fault.textContent = "";
    while (stillWanted()) {
      try {
        const answer = await ask();
        fault.textContent = "";
        return answer;
      } catch (error) {
        fault.textContent = error instanceof NotYet ? "Counting; this takes a moment …" : error.message;
        if (!(error instanceof NotYet)) return undefined;
        this.app.counting.poll();
        await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
      }
    }
    return undefined;
  }

  fillForm() {
    const { state, facts, source } = this.app;
    const names = ["", "label", "-label", ...(source.alive ? COLUMNS.flatMap((name) => [`-${name}`, name]) : ["-item"]), "shuffle"]
      .filter((name) => facts.labelled || !name.endsWith("label"));
    byId("sort").replaceChildren(...names.map((name) => make("option", { value: name }, sortName(name))));
    for (const name of FIELDS) byId(name).value = state[name] ?? "";
    byId("where").placeholder = facts.labelled ? "label == 3 and ink > 0.2" : "ink > 0.2";
    byId("seed").closest("label").hidden = state.sort !== "shuffle";
  }

  readForm() {
    const { state } = this.app;
    for (const name of FIELDS) state[name] = byId(name).value.trim() || undefined;
    if (state.sort !== "shuffle") state.seed = undefined;
    this.apply();
  }
}

function sortName(name) {
  if (!name) return "as in the file";
  if (name === "shuffle") return "shuffled";
  if (name === "label" || name === "-label") return name === "label" ? "label" : "label, last first";
  if (name === "-item") return "last first";
  return name.startsWith("-") ? `most ${name.slice(1)}` : `least ${name}`;
}
