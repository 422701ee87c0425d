// Comparison with other labels: a matrix whose cells open their items.

import { byId, make } from "./elements.js";

export class ComparePanel {
  constructor(app) {
    this.app = app;
    this.place = byId("panel-compare");
  }

  // Called when the panel is opened, and when labels have changed.
  async show() {
    const { app } = this;
    const { rivals, labelled } = app.facts;
    if (!labelled || !rivals.length || !app.source.alive) {
      this.place.replaceChildren(make("h2", {}, "Compare labels"), make("p", { className: "quiet" },
        labelled ? "Other labels for the same items, predictions for example, are compared when they are given: "
          : "There are no labels here to compare.",
        labelled ? make("code", {}, "idx view PLACE --compare FILE") : null));
      return;
    }
    const choice = make("select", { "aria-label": "Labels to compare with", onchange: () => app.compareWith(choice.value) },
      make("option", { value: "" }, "nothing"),
      ...rivals.map((name, n) => make("option", { value: String(n) }, name)));
    choice.value = app.state.rival ?? "";
    const told = make("div");
    this.place.replaceChildren(make("h2", {}, "Compare with"), choice, told);
    if (app.state.rival === undefined) return;
    try {
      told.replaceChildren(...this.matrix(await app.source.confusion(app.state.rival)));
    } catch (fault) {
      told.replaceChildren(make("p", { className: "fault" }, fault.message));
    }
  }

  matrix({ labels, rows, equal, count }) {
    const { app } = this;
    const most = Math.max(1, ...rows.flatMap((row, n) => row.filter((_, m) => n !== m)));
    const cell = (found, row, column) => {
      const place = make("td", { className: row === column ? "same" : "" });
      if (!found) return place;
      const names = [app.names.classOf(labels[row]), app.names.classOf(labels[column])];
      const button = make("button", {
        type: "button",
        "aria-label": `${found} items with label ${names[0]} and ${names[1]} in the other file`,
        title: `label ${names[0]}, there ${names[1]}: ${found.toLocaleString("en")}`,
        onclick: () => app.query.showWhere(`label == ${labels[row]} and other == ${labels[column]}`),
      }, short(found));
      if (row !== column) button.style.setProperty("--part", `${Math.round(5 + 65 * Math.sqrt(found / most))}%`);
      place.append(button);
      return place;
    };
    const table = make("table", { className: "confusion" },
      make("caption", {}, "Rows: labels here. Columns: labels there."),
      make("thead", {}, make("tr", {}, make("td"), ...labels.map((label) => make("th", { scope: "col" }, app.names.classOf(label))))),
      make("tbody", {}, ...rows.map((row, n) => make("tr", {}, make("th", { scope: "row" }, app.names.classOf(labels[n])),
        ...row.map((found, m) => cell(found, n, m))))));
    const wrong = count - equal;
    return [
      make("p", {}, make("b", {}, `${((100 * equal) / Math.max(1, count)).toFixed(2)} %`), ` equal; `,
        make("button", { type: "button", className: "link", disabled: !wrong, onclick: () => app.query.showWhere("label != other") }, `${wrong.toLocaleString("en")} differ`)),
      make("div", { className: "wide" }, table),
    ];
  }
}

function short(number) {
  if (number < 10_000) return String(number);
  return number < 1e6 ? `${Math.round(number / 1000)}k` : `${(number / 1e6).toFixed(1)}M`;
}
