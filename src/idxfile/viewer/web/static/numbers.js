// Numbers: what the file is, its header byte by byte, its values, its problems.

import { byId, counted, factList, make, shortNumber } from "./elements.js";
import { bytesOf, headerFields } from "./idx.js";

export class NumbersPanel {
  constructor(app) {
    this.app = app;
    this.parts = {
      problems: make("section", {}),
      facts: make("section", {}),
      header: make("section", {}),
      values: make("section", {}),
    };
    byId("panel-numbers").append(...Object.values(this.parts));
  }

  show() {
    const { facts } = this.app;
    this.parts.facts.replaceChildren(make("h2", {}, "File"), factList([
      ["Name", facts.name],
      ["Format", facts.dialect && (facts.dialect === "idx" ? "IDX" : "Lush / EBLearn matrix")],
      ["Type", facts.dtype],
      ["Shape", facts.declared && (facts.declared.map((n) => n.toLocaleString("en")).join(" × ") || "scalar")],
      ["Items", facts.declared?.length && facts.count !== facts.declared[0]
        ? `${facts.count.toLocaleString("en")} of ${facts.declared[0].toLocaleString("en")} are whole`
        : facts.count.toLocaleString("en")],
      ["Codec", facts.codecs.join(" in ") || "none"],
      ["Size", facts.nbytes === null ? null : counted(facts.nbytes, "byte")],
      ["Byte order", facts.byteorder && (facts.byteorder === "big" ? "most significant first" : "least significant first")],
      ["Read", facts.dtype && (facts.raw ? "by this page, from the file’s bytes" : "through the server")],
    ]), facts.dtype ? this.windowForm() : "");
    this.showHeader();
    this.showProblems(facts.problems, false);
  }

  // Which values become black and white.
  windowForm() {
    const { app } = this;
    const field = (name, value) => make("input", { name, value: String(Number(value.toPrecision(7))), inputMode: "decimal", size: 8 });
    const form = make("form", { className: "row", "aria-label": "Values that become black and white" },
      make("label", {}, "Black ", field("low", app.facts.window[0])),
      make("label", {}, "White ", field("high", app.facts.window[1])),
      make("button", { type: "submit" }, "Set"),
      make("button", { type: "button", onclick: () => app.setWindow(null) }, "Reset"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const [low, high] = ["low", "high"].map((name) => Number(form.elements[name].value));
      if (isFinite(low) && isFinite(high) && low !== high) app.setWindow([low, high]);
    });
    return form;
  }

  showHeader() {
    const bytes = bytesOf(this.app.facts.head);
    if (!bytes.length) return;
    const fields = headerFields(bytes);
    const told = make("p", { className: "told", "aria-live": "polite" }, "Hover or step through the bytes: each tells its field.");
    const groups = fields.map((field, n) => {
      const group = make("span", { className: `bytes tone-${n % 4}`, tabIndex: 0, title: field.text, "aria-label": `${field.name}: ${field.text}` });
      for (let at = field.start; at < field.stop; at++) {
        const byte = make("code", {}, bytes[at].toString(16).padStart(2, "0"));
        byte.addEventListener("mouseenter", () => { told.textContent = `Byte ${at}: ${field.text}`; });
        group.append(byte, " ");
      }
      group.addEventListener("focus", () => {
        told.textContent = `Bytes ${field.start} to ${field.stop - 1}: ${field.text}`;
      });
      return group;
    });
    this.parts.header.replaceChildren(make("h2", {}, "Header"), make("div", { className: "hex" }, ...groups), told);
  }

  showProblems(problems, checked) {
    const telling = problems.filter((problem) => problem.level !== "note");
    const badge = byId("problem-count");
    badge.hidden = !telling.length;
    badge.textContent = telling.length;
    badge.className = telling.some((problem) => problem.level === "error") ? "bad" : "";
    const list = problems.map((problem) => make("li", { className: problem.level },
      make("b", {}, problem.code), " ", problem.message,
      problem.hint ? make("p", { className: "quiet" }, problem.hint) : null));
    this.parts.problems.replaceChildren(make("h2", {}, "Problems"),
      list.length ? make("ul", { className: "problems" }, ...list)
        : make("p", { className: "quiet" }, checked ? "None: every byte was read and is as the format has it." : "None so far."));
  }

  showFigures(figures) {
    if (figures.problems) this.showProblems(figures.problems, true);
    const { summary } = figures;
    if (!summary) return;
    this.parts.values.replaceChildren(make("h2", {}, "Values"), this.histogram(summary), factList([
      ["Range", summary.count ? `${shortNumber(summary.minimum)} to ${shortNumber(summary.maximum)}` : "none"],
      ["Mean", shortNumber(summary.mean)],
      ["Standard deviation", shortNumber(summary.std)],
      ["Zeros", `${summary.zeros.toLocaleString("en")} of ${summary.count.toLocaleString("en")}`],
      ["Not finite", summary.not_finite ? summary.not_finite.toLocaleString("en") : null],
    ]));
  }

  // A bar for each of some bins; of counts so unlike, by their logarithm.
  histogram({ histogram, minimum, maximum, dtype, count }) {
    const bins = dtype === "uint8" ? folded(histogram, 4) : histogram;
    const most = Math.log1p(Math.max(...bins, 1));
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", `0 0 ${bins.length} 32`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Histogram of the values, logarithmic");
    svg.classList.add("histogram");
    const [low, high] = dtype === "uint8" ? [0, 256] : [minimum ?? 0, maximum ?? 0];
    bins.forEach((found, n) => {
      const bar = document.createElementNS(space, "rect");
      const high_ = found ? Math.max(0.6, (32 * Math.log1p(found)) / most) : 0;
      for (const [name, value] of Object.entries({ x: n + 0.08, y: 32 - high_, width: 0.84, height: high_ })) bar.setAttribute(name, value);
      const title = document.createElementNS(space, "title");
      const from = low + ((high - low) * n) / bins.length, to = low + ((high - low) * (n + 1)) / bins.length;
      title.textContent = dtype === "uint8" ? `${from} to ${to - 1}: ${found.toLocaleString("en")}`
        : `${shortNumber(from)} to ${shortNumber(to)}: ${found.toLocaleString("en")}`;
      bar.append(title);
      svg.append(bar);
    });
    return make("figure", {}, svg, make("figcaption", {},
      make("span", {}, shortNumber(dtype === "uint8" ? 0 : minimum)), make("span", {}, count ? "count, logarithmic" : "no values"),
      make("span", {}, shortNumber(dtype === "uint8" ? 255 : maximum))));
  }
}

function folded(counts, by) {
  return Array.from({ length: counts.length / by }, (_, n) =>
    counts.slice(n * by, (n + 1) * by).reduce((a, b) => a + b, 0));
}
