// The page as a whole: from the address to the first picture, and what happens after.

import { Blocks } from "./blocks.js";
import { Chosen } from "./chosen.js";
import { Classes } from "./classes.js";
import { ComparePanel } from "./compare.js";
import { byId, counted, make, shortNumber } from "./elements.js";
import { Grid, LARGEST, SMALLEST } from "./grid.js";
import { bytesOf, decoded, elementBytes, parsedHeader } from "./idx.js";
import { ItemPanel } from "./item.js";
import { listen } from "./keys.js";
import { NumbersPanel } from "./numbers.js";
import { layoutOf, toneOf } from "./paint.js";
import { NotYet, PageSource, ServerSource, takeToken } from "./source.js";
import { classesOf, isNatural, queryOf, remember, stateOf, wordsOf } from "./state.js";

const PANELS = ["item", "numbers", "compare", "chosen"];
const COLUMNS = ["mean", "ink", "asymmetry", "unusual"];
const POLL_MS = 400, JOURNAL_MS = 2500, MOST_WAIT_MS = 250;

class App {
  constructor() {
    const words = new URLSearchParams(location.hash.slice(1));
    const data = byId("data");
    this.source = data ? new PageSource(data.textContent) : new ServerSource(takeToken(words));
    this.state = stateOf(words);
    history.replaceState(null, "", `#${wordsOf(this.state)}`); // the token leaves the address at once
    this.asked = this.source.facts(this.state.set ?? 0).catch((fault) => fault); // the server works meanwhile
    this.facts = { count: 0, window: [0, 255], rivals: [] };
    this.layout = layoutOf([]);
    this.order = null;
    this.shownTheme();
    this.chosen = new Chosen(this);
    this.grid = new Grid(byId("scroller"), byId("spacer"), byId("grid"), this.look());
    this.classPart = new Classes(this);
    this.itemPanel = new ItemPanel(this);
    this.numbers = new NumbersPanel(this);
    this.compare = new ComparePanel(this);
    document.body.classList.toggle("alone", !this.source.alive);
    if (innerWidth <= 760) byId("choice").open = false;
    this.connect();
    listen(this);
  }

  // What the canvas asks while it draws.
  look() {
    return {
      hasCaptions: () => this.facts.labelled && this.layout.kind !== "number",
      caption: (item) => this.captionOf(item),
      mark: (item) => this.isChanged(item) || (this.others && this.labels && this.others[item] !== this.labels[item]),
      isChosen: (item) => this.chosen.has(item),
      window: () => this.window(),
      inverted: () => Boolean(this.state.invert),
      zoomed: (tile) => this.zoomed(tile),
      drawn: (complete) => this.drawn(complete),
      clicked: (position, event) => this.clicked(position, event),
      opened: (position) => position >= 0 && this.open(),
      boxed: (positions, event) => this.chosen.take(positions.map((p) => this.grid.itemAt(p)), event.ctrlKey || event.metaKey || event.shiftKey),
      hovered: (position) => this.tally(position),
    };
  }

  async start() {
    await this.openPlace(this.state.set ?? 0, false);
    setTimeout(() => this.poll(), 300); // the first picture goes before
    if (this.source.alive) setInterval(() => this.reread(), JOURNAL_MS);
  }

  async openPlace(set, fresh) {
    const { source, grid } = this;
    try {
      const facts = this.asked ? await this.asked : await source.facts(set);
      this.asked = null;
      if (facts instanceof Error) throw facts;
      this.facts = facts;
    } catch (fault) {
      return this.notice(source.token === "" ? "This page needs the address that idx view printed: it has the token." : fault.message);
    }
    const { facts } = this;
    if (fresh) this.state = { set, panel: this.state.panel, tile: this.state.tile, invert: this.state.invert };
    this.state.set = set || undefined;
    this.labels = this.others = this.changed = this.means = null;
    this.figures = null;
    this.layout = layoutOf(facts.item_shape ?? []);
    this.window_ = this.state.low !== undefined ? [this.state.low, this.state.high] : facts.window;
    this.fileWindow = facts.window;
    facts.window = this.window_;
    this.chosen.fit(facts.count);
    if (!facts.dtype) {
      this.furnish();
      grid.show(new Blocks(source, this.layout, "uint8", 1, this.tone(), () => {}), this.layout, null, 0);
      this.notice(facts.problems[0]?.message ?? "There is nothing to show.", facts.problems[0]?.hint);
      return;
    }
    const itemBytes = this.layout.size * elementBytes(facts.dtype);
    const header = facts.raw ? parsedHeader(bytesOf(facts.head)) : null;
    source.lies(header?.offset, itemBytes);
    this.blocks?.clear();
    this.blocks = new Blocks(source, this.layout, facts.dtype, itemBytes, this.tone(), () => grid.redraw());
    grid.tile = this.state.tile ?? this.usualTile();
    if (isNatural(this.state)) { // the first picture is asked for before all else
      this.blocks.reorder(null, facts.count);
      grid.show(this.blocks, this.layout, null, facts.count);
      if (this.state.item !== undefined) grid.reveal(this.state.item, true);
      grid.draw();
      await new Promise((done) => {
        this.firstDrawn = done;
        setTimeout(done, MOST_WAIT_MS);
      });
    }
    this.furnish();
    const labels = facts.labelled ? source.labels() : null;
    if (isNatural(this.state)) this.order = null;
    else await this.applyOrder(false);
    if (labels) this.gotLabels(await labels);
    if (this.state.rival !== undefined) await this.compareWith(this.state.rival, false);
    if (facts.journal) this.journalled(facts.journal);
    if (this.state.item !== undefined) this.goTo(this.state.item);
    else this.moved();
    this.openPanel(this.state.panel ?? "item", false);
  }

  // All that stands around the items.
  furnish() {
    const { facts } = this;
    this.title();
    this.chosen.build();
    this.chosen.changed();
    this.numbers.show();
    this.fillForm();
    this.openPanel(facts.count || this.state.panel ? this.state.panel ?? "item" : "numbers", false);
    this.nothing();
    this.zoomed(this.grid.tile, false);
  }

  usualTile() {
    const narrow = innerWidth < 760;
    if (this.layout.kind === "curve") return 128;
    if (this.layout.kind === "number") return 34;
    return Math.max(narrow ? 38 : 44, Math.min(narrow ? 80 : 112, Math.max(this.layout.width, this.layout.height) * 1.5));
  }

  title() {
    const { facts } = this;
    document.title = `${facts.name} – idx view`;
    byId("name").textContent = facts.name;
    const shape = facts.item_shape ? [facts.count.toLocaleString("en"), ...facts.item_shape].join(" × ") : "no items";
    byId("what").textContent = [shape, facts.dtype, ...facts.codecs].filter(Boolean).join(" · ");
    const places = byId("places");
    places.hidden = facts.places.length < 2;
    byId("name").parentElement.hidden = !places.hidden;
    if (!places.hidden && places.options.length !== facts.places.length) {
      places.replaceChildren(...facts.places.map((name, n) => make("option", { value: String(n) }, name)));
    }
    places.value = String(this.state.set ?? 0);
    this.notice("");
  }

  // Words over the items

  notice(text, hint) {
    const place = byId("notice");
    place.hidden = !text;
    place.replaceChildren(make("b", {}, text), hint ? make("p", {}, hint) : "",
      text && this.facts.problems?.length ? make("button", { type: "button", onclick: () => this.openPanel("numbers") }, "All problems and the header") : "");
  }

  nothing() {
    const place = byId("nothing");
    place.hidden = Boolean(this.grid.count) || !this.facts.dtype;
    place.textContent = this.facts.count ? "No item fits." : "This file has no items.";
  }

  tally(hovered = -1) {
    const { grid, facts, chosen } = this;
    if (!grid) return;
    const parts = [];
    if (hovered >= 0) parts.push(this.nameOf(grid.itemAt(hovered)));
    if (chosen.count) parts.push(`${chosen.count.toLocaleString("en")} selected`);
    parts.push(this.order ? `${grid.count.toLocaleString("en")} of ${counted(facts.count, "item")}` : counted(facts.count, "item"));
    const declared = facts.declared?.[0];
    if (facts.dtype && declared > facts.count && facts.problems.length) parts.push(`${declared.toLocaleString("en")} declared`);
    byId("tally").textContent = parts.join(" · ");
  }

  drawn(complete) {
    if (complete) this.firstDrawn?.();
    const { blocks } = this;
    if (blocks?.fault) this.notice(blocks.fault.message);
  }

  // Labels

  gotLabels(labels) {
    this.labels = labels;
    this.grid.redraw();
    this.countClasses();
  }

  countClasses() {
    if (!this.labels) return this.classPart.show(null);
    const counts = new Map();
    for (const label of this.labels) counts.set(label, (counts.get(label) ?? 0) + 1);
    this.facts.classes?.forEach((name, label) => name !== null && !counts.has(label) && counts.set(label, 0));
    this.classPart.show([...counts].sort((a, b) => a[0] - b[0]).slice(0, 300));
  }

  labelOf(item) {
    return this.labels?.[item] ?? null;
  }

  otherOf(item) {
    return this.others?.[item] ?? null;
  }

  rivalName() {
    return this.facts.rivals[this.state.rival] ?? "Other";
  }

  className(label) {
    return this.facts.classes?.[label] ?? String(label);
  }

  labelNamed(text) {
    if (/^-?\d{1,9}$/.test(text)) return Number(text);
    const label = this.facts.classes?.findIndex((name) => name === text && name !== null) ?? -1;
    return label < 0 ? null : label;
  }

  captionOf(item) {
    const label = this.labelOf(item), other = this.otherOf(item);
    if (label === null) return "";
    const name = this.className(label);
    return other !== null && other !== label ? `${name} → ${this.className(other)}` : name;
  }

  isChanged(item) {
    return this.changed?.has(item) ?? false;
  }

  numberOf(item) {
    return this.facts.numbers?.[item] ?? item;
  }

  nameOf(item) {
    const label = this.captionOf(item);
    return `item ${this.numberOf(item).toLocaleString("en")}${label ? `, label ${label}` : ""}`;
  }

  // What the journal says by now: also what another view has written.
  journalled(journal) {
    this.journalLines = journal.lines;
    if (this.labels) {
      this.changed = new Set();
      for (const [item, label, stored] of journal.now) {
        if (this.labels instanceof Uint8Array && (label > 255 || label < 0)) this.labels = Int32Array.from(this.labels);
        this.labels[item] = label;
        if (label !== stored) this.changed.add(item);
      }
      this.countClasses();
    }
    this.chosen.showJournal(journal);
    this.grid.redraw();
    if (this.itemPanel.item !== undefined && this.itemPanel.item >= 0) this.itemPanel.show(this.itemPanel.item);
    if (document.body.dataset.panel === "compare") this.compare.show();
  }

  async reread() {
    if (document.hidden || !this.facts.labelled) return;
    try {
      const journal = await this.source.journal();
      if (journal.lines !== this.journalLines) this.journalled(journal);
    } catch { /* the server has ended, or is busy */ }
  }

  async compareWith(rival, show = true) {
    this.state.rival = rival === "" ? undefined : rival;
    this.others = null;
    if (this.state.rival !== undefined) {
      try {
        this.others = await this.source.labels(this.state.rival);
      } catch (fault) {
        this.state.rival = undefined;
        this.notice(fault.message);
      }
    }
    this.changedState();
    this.fillForm();
    this.grid.redraw();
    if (show) await this.compare.show();
  }

  // Which items, in which order

  classes() {
    return classesOf(this.state);
  }

  chooseClasses(classes) {
    this.state.classes = classes.join(",") || undefined;
    this.applyOrder();
  }

  toggleClass(label, besides) {
    const now = this.classes();
    if (besides) this.chooseClasses(now.includes(label) ? now.filter((other) => other !== label) : [...now, label].sort((a, b) => a - b));
    else this.chooseClasses(now.length === 1 && now[0] === label ? [] : [label]);
  }

  showWhere(where) {
    Object.assign(this.state, { where, classes: undefined, from: undefined, to: undefined });
    this.applyOrder();
  }

  mostUnusual(label) {
    Object.assign(this.state, { classes: String(label), sort: "-unusual", where: undefined });
    this.applyOrder();
  }

  showAll() {
    for (const name of ["classes", "from", "to", "where", "sort", "seed"]) delete this.state[name];
    this.applyOrder();
  }

  async applyOrder(tell = true) {
    const { state, grid, source } = this;
    const before = grid.count && this.blocks.order !== undefined ? grid.itemAt(grid.cursor) : undefined;
    const pass = (this.orderPass = (this.orderPass ?? 0) + 1);
    this.fillForm();
    this.classPart.press();
    let order = null;
    if (!isNatural(state)) {
      order = await this.patiently(() => source.order(queryOf(state)), () => pass === this.orderPass);
      if (pass !== this.orderPass) return;
      if (order === undefined) order = this.order ?? null;
    }
    this.order = order;
    const count = order ? order.length : this.facts.count;
    this.blocks.reorder(order, count);
    grid.cursor = 0;
    grid.top = 0;
    grid.show(this.blocks, this.layout, order, count);
    grid.setTop(0);
    if (!order && tell && before !== undefined) this.goTo(before);
    this.nothing();
    this.tally();
    if (tell) this.moved();
    this.changedState();
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
        this.poll();
        await new Promise((done) => setTimeout(done, POLL_MS));
      }
    }
    return undefined;
  }

  fillForm() {
    const { state, facts } = this;
    const names = ["", "label", "-label", ...(this.source.alive ? COLUMNS.flatMap((name) => [`-${name}`, name]) : ["-item"]), "shuffle"]
      .filter((name) => facts.labelled || !name.endsWith("label"));
    byId("sort").replaceChildren(...names.map((name) => make("option", { value: name }, sortName(name))));
    for (const name of ["where", "from", "to", "sort", "seed"]) byId(name).value = state[name] ?? "";
    byId("where").placeholder = facts.labelled ? "label == 3 and ink > 0.2" : "ink > 0.2";
    byId("seed").closest("label").hidden = state.sort !== "shuffle";
  }

  readForm() {
    for (const name of ["where", "from", "to", "sort", "seed"]) this.state[name] = byId(name).value.trim() || undefined;
    if (this.state.sort !== "shuffle") this.state.seed = undefined;
    this.applyOrder();
  }

  // Figures: counted by the server meanwhile

  async poll() {
    if (!this.source.alive || this.polling) return;
    this.polling = true;
    const { set } = this.source;
    try {
      for (;;) {
        const figures = await this.source.figures();
        if (this.source.set !== set) break;
        await this.gotFigures(figures);
        if (figures.state !== "running") break;
        await new Promise((done) => setTimeout(done, POLL_MS));
      }
    } catch { /* the server has ended */ }
    this.polling = false;
    if (this.source.set !== set) this.poll();
  }

  async gotFigures(figures) {
    const before = this.figures;
    this.figures = figures;
    const place = byId("counting");
    if (figures.state === "running") place.textContent = `Counting … ${Math.round(100 * figures.done)} %`;
    else if (figures.state === "failed") place.textContent = `Counting ended: ${figures.fault}`;
    else if (figures.state === "none" && this.facts.dtype) {
      place.replaceChildren(make("button", { type: "button", onclick: async () => { await this.source.startFigures(); this.poll(); } }, "Count all values"));
    } else place.textContent = "";
    this.numbers.showFigures(figures);
    if (figures.means.length && !before?.means.length) {
      this.means = decoded(await this.source.means(), "float32");
      this.showMeans();
    }
    if (figures.state === "ready" && before?.state === "running" && this.grid.count) this.itemPanel.show(this.grid.itemAt(this.grid.cursor));
  }

  showMeans() {
    if (this.means && this.figures && this.labels) this.classPart.means(this.figures.means, this.means);
  }

  // Moving

  move(position, selecting) {
    const { grid, chosen } = this;
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
    return Array.from({ length: last - first + 1 }, (_, n) => this.grid.itemAt(first + n));
  }

  moved() {
    const { grid } = this;
    if (!grid.count) {
      byId("status").textContent = "";
      return;
    }
    const item = grid.itemAt(grid.cursor);
    const name = this.nameOf(item);
    byId("status").textContent = name[0].toUpperCase() + name.slice(1) + (this.chosen.has(item) ? ", selected" : "");
    this.itemPanel.show(item);
    this.state.item = item || undefined;
    this.changedState();
    this.tally();
  }

  goTo(item) {
    const { grid, order } = this;
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
    if (item < 0) item += this.facts.count;
    if (this.facts.numbers) item = this.facts.numbers.indexOf(item);
    if (this.goTo(item)) return true;
    if (item < 0 || item >= this.facts.count) return false;
    this.state.item = item;
    this.showAll();
    return true;
  }

  clicked(position, event) {
    if (position < 0) {
      this.chosen.clear();
      return;
    }
    const { grid, chosen } = this;
    const item = grid.itemAt(position);
    const touch = event.pointerType === "touch";
    if (event.shiftKey) chosen.take(this.between(grid.cursor, position), event.ctrlKey || event.metaKey);
    else if (event.ctrlKey || event.metaKey) chosen.toggle(item);
    else if (!touch) chosen.take([item]);
    if (!event.shiftKey) grid.cursor = position;
    this.pivot = null;
    this.moved();
    grid.redraw();
    if (touch) this.openPanel("item");
  }

  open() {
    if (this.grid.count) this.itemPanel.open();
  }

  // Looks

  window() {
    return this.facts.window;
  }

  tone() {
    return toneOf(this.facts.window, Boolean(this.state.invert));
  }

  repaint() {
    this.blocks?.repaint(this.tone());
    this.itemPanel.repaint();
    this.showMeans();
    byId("invert").setAttribute("aria-pressed", String(Boolean(this.state.invert)));
  }

  invert() {
    this.state.invert = this.state.invert ? undefined : 1;
    this.repaint();
    this.changedState();
  }

  setWindow(window) {
    this.facts.window = window ?? this.fileWindow;
    [this.state.low, this.state.high] = window ?? [undefined, undefined];
    this.numbers.show();
    if (this.figures) this.numbers.showFigures(this.figures);
    this.repaint();
    this.changedState();
  }

  zoomed(tile, keep = true) {
    if (keep) this.state.tile = tile;
    byId("zoom").value = String((100 * Math.log(tile / SMALLEST)) / Math.log(LARGEST / SMALLEST));
    if (keep) this.changedState();
  }

  shownTheme() {
    let theme = null;
    try {
      theme = localStorage.getItem("idx-theme");
    } catch { /* a page from disk may have no memory */ }
    if (theme) document.documentElement.dataset.theme = theme;
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("idx-theme", root.dataset.theme);
    } catch { /* see above */ }
    this.grid.themed();
  }

  openPanel(panel, byHand = true) {
    const name = PANELS.includes(panel) ? panel : "item";
    document.body.dataset.panel = name;
    if (byHand) document.body.classList.add("panel-open");
    for (const other of PANELS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      byId(`panel-${other}`).hidden = other !== name;
    }
    if (name === "compare") this.compare.show();
    if (byHand) {
      this.state.panel = name === "item" ? undefined : name;
      this.changedState();
    }
  }

  // On a narrow screen the panel lies over the items; whether it did.
  closePanel() {
    const open = document.body.classList.contains("panel-open") && innerWidth <= 760;
    document.body.classList.remove("panel-open");
    return open;
  }

  changedState() {
    remember(this.state);
  }

  connect() {
    const { grid } = this;
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      grid.canvas.focus();
    });
    byId("places").addEventListener("change", (event) => this.openPlace(Number(event.target.value), true).then(() => this.poll()));
    byId("jump").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = byId("jump-to");
      const there = this.jump(field.value.trim());
      field.setAttribute("aria-invalid", String(!there));
      if (!there) return;
      field.value = "";
      grid.canvas.focus();
    });
    byId("zoom").addEventListener("input", (event) => grid.zoom(SMALLEST * (LARGEST / SMALLEST) ** (event.target.value / 100)));
    byId("invert").addEventListener("click", () => this.invert());
    byId("theme").addEventListener("click", () => this.theme());
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("query").addEventListener("submit", (event) => {
      event.preventDefault();
      this.readForm();
    });
    byId("query").addEventListener("reset", (event) => {
      event.preventDefault();
      this.showAll();
    });
    byId("sort").addEventListener("change", () => this.readForm());
    for (const panel of PANELS) byId(`tab-${panel}`).addEventListener("click", () => this.openPanel(panel));
    byId("tabs").addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.stopPropagation();
      const now = PANELS.indexOf(document.body.dataset.panel);
      const next = PANELS[(now + by + PANELS.length) % PANELS.length];
      this.openPanel(next);
      byId(`tab-${next}`).focus();
    });
    byId("right-close").addEventListener("click", () => this.closePanel());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => grid.themed());
    addEventListener("hashchange", () => {
      const words = new URLSearchParams(location.hash.slice(1));
      if (words.has("token") && this.source.alive) this.source.token = takeToken(words);
      this.state = stateOf(words);
      this.openPlace(this.state.set ?? 0, false).then(() => this.poll());
    });
  }
}

function sortName(name) {
  if (!name) return "as in the file";
  if (name === "shuffle") return "shuffled";
  if (name === "label" || name === "-label") return name === "label" ? "label" : "label, last first";
  if (name === "-item") return "last first";
  return name.startsWith("-") ? `most ${name.slice(1)}` : `least ${name}`;
}

new App().start();
