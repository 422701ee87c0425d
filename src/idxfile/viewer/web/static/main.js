// The page as a whole: from the address to the first picture, and what happens after.

import { Blocks } from "./blocks.js";
import { Chosen } from "./chosen.js";
import { Classes } from "./classes.js";
import { ComparePanel } from "./compare.js";
import { Counting } from "./counting.js";
import { Cursor } from "./cursor.js";
import { byId, counted, make } from "./elements.js";
import { Grid, LARGEST, SMALLEST } from "./grid.js";
import { bytesOf, elementBytes, parsedHeader } from "./idx.js";
import { ItemPanel } from "./item.js";
import { listen } from "./keys.js";
import { Names } from "./names.js";
import { NumbersPanel } from "./numbers.js";
import { layoutOf, toneOf } from "./paint.js";
import { Panels, rememberedTheme, turnTheme } from "./panels.js";
import { Query } from "./query.js";
import { PageSource, ServerSource, takeToken } from "./source.js";
import { isNatural, remember, stateOf, wordsOf } from "./state.js";

const JOURNAL_MS = 2500, MOST_WAIT_MS = 250;

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
    rememberedTheme();
    this.names = new Names(this);
    this.chosen = new Chosen(this);
    this.grid = new Grid(byId("scroller"), byId("spacer"), byId("grid"), this.look());
    this.cursor = new Cursor(this);
    this.query = new Query(this);
    this.counting = new Counting(this);
    this.panels = new Panels(this);
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
      caption: (item) => this.names.captionOf(item),
      mark: (item) => this.names.isChanged(item) || this.names.differs(item),
      isChosen: (item) => this.chosen.has(item),
      window: () => this.facts.window,
      inverted: () => Boolean(this.state.invert),
      zoomed: (tile) => this.zoomed(tile),
      drawn: (complete) => this.drawn(complete),
      clicked: (position, event) => this.cursor.clicked(position, event),
      opened: (position) => position >= 0 && this.open(),
      boxed: (positions, event) => this.chosen.take(positions.map((p) => this.grid.itemAt(p)), event.ctrlKey || event.metaKey || event.shiftKey),
      hovered: (position) => this.tally(position),
    };
  }

  async start() {
    await this.openPlace(this.state.set ?? 0, false);
    setTimeout(() => this.counting.poll(), 300); // the first picture goes before
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
    this.names.forget();
    this.counting.forget();
    this.layout = layoutOf(facts.item_shape ?? []);
    this.fileWindow = facts.window;
    if (this.state.low !== undefined) facts.window = [this.state.low, this.state.high];
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
    else await this.query.apply(false);
    if (labels) {
      this.names.labels = await labels;
      this.relabelled();
    }
    if (this.state.rival !== undefined) await this.compareWith(this.state.rival, false);
    if (facts.journal) this.journalled(facts.journal);
    if (this.state.item !== undefined) this.cursor.goTo(this.state.item);
    else this.cursor.moved();
    this.panels.open(this.state.panel ?? "item", false);
  }

  // All that stands around the items.
  furnish() {
    const { facts } = this;
    this.title();
    this.chosen.build();
    this.chosen.changed();
    this.numbers.show();
    this.query.fillForm();
    this.panels.open(facts.count || this.state.panel ? this.state.panel ?? "item" : "numbers", false);
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
      text && this.facts.problems?.length ? make("button", { type: "button", onclick: () => this.panels.open("numbers") }, "All problems and the header") : "");
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
    if (hovered >= 0) parts.push(this.names.of(grid.itemAt(hovered)));
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

  relabelled() {
    const { names } = this;
    this.classPart.show(names.labels ? names.counts() : null);
    this.counting.showMeans();
    this.grid.redraw();
  }

  // What the journal says by now: also what another view has written.
  journalled(journal) {
    this.journalLines = journal.lines;
    if (this.names.labels) this.names.relabel(journal.now);
    this.relabelled();
    this.chosen.showJournal(journal);
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
    this.names.others = null;
    if (this.state.rival !== undefined) {
      try {
        this.names.others = await this.source.labels(this.state.rival);
      } catch (fault) {
        this.state.rival = undefined;
        this.notice(fault.message);
      }
    }
    this.changedState();
    this.query.fillForm();
    this.grid.redraw();
    if (show) await this.compare.show();
  }

  // Which items, in which order

  // Show items in an order, null for as they lie; stay at the item that was looked at if all are shown.
  reorder(order, tell) {
    const { grid, blocks } = this;
    const before = grid.count && blocks.order !== undefined ? grid.itemAt(grid.cursor) : undefined;
    this.order = order;
    const count = order ? order.length : this.facts.count;
    blocks.reorder(order, count);
    grid.cursor = 0;
    grid.top = 0;
    grid.show(blocks, this.layout, order, count);
    grid.setTop(0);
    if (!order && tell && before !== undefined) this.cursor.goTo(before);
    this.nothing();
    this.tally();
    if (tell) this.cursor.moved();
    this.changedState();
  }

  open() {
    if (this.grid.count) this.itemPanel.open();
  }

  // Looks

  tone() {
    return toneOf(this.facts.window, Boolean(this.state.invert));
  }

  repaint() {
    this.blocks?.repaint(this.tone());
    this.itemPanel.repaint();
    this.counting.showMeans();
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
    if (this.counting.figures) this.numbers.showFigures(this.counting.figures);
    this.repaint();
    this.changedState();
  }

  zoomed(tile, keep = true) {
    if (keep) this.state.tile = tile;
    byId("zoom").value = String((100 * Math.log(tile / SMALLEST)) / Math.log(LARGEST / SMALLEST));
    if (keep) this.changedState();
  }

  turnTheme() {
    turnTheme();
    this.grid.themed();
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
    byId("places").addEventListener("change", (event) => this.openPlace(Number(event.target.value), true).then(() => this.counting.poll()));
    byId("jump").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = byId("jump-to");
      const there = this.cursor.jump(field.value.trim());
      field.setAttribute("aria-invalid", String(!there));
      if (!there) return;
      field.value = "";
      grid.canvas.focus();
    });
    byId("zoom").addEventListener("input", (event) => grid.zoom(SMALLEST * (LARGEST / SMALLEST) ** (event.target.value / 100)));
    byId("invert").addEventListener("click", () => this.invert());
    byId("theme").addEventListener("click", () => this.turnTheme());
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => grid.themed());
    addEventListener("hashchange", () => {
      const words = new URLSearchParams(location.hash.slice(1));
      if (words.has("token") && this.source.alive) this.source.token = takeToken(words);
      this.state = stateOf(words);
      this.openPlace(this.state.set ?? 0, false).then(() => this.counting.poll());
    });
  }
}

new App().start();
