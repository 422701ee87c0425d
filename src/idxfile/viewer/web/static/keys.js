// The keyboard, all over the page.

import { byId } from "./elements.js";

export function listen(app) {
  document.addEventListener("keydown", (event) => {
    const inField = event.target.closest("input, select, textarea");
    const dialog = document.querySelector("dialog[open]");
    if (event.key === "Escape") return escape(app, event, inField, dialog);
    if (inField || dialog?.id === "help") return;
    if (dialog && !/^Arrow/.test(event.key)) return;
    const key = event.ctrlKey || event.metaKey ? `Ctrl ${event.key.toLowerCase()}` : event.key;
    const action = event.altKey ? null : actionOf(app, event, key, dialog);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function actionOf(app, event, key, dialog) {
  const { grid } = app;
  const onButton = event.target.closest("button, a, summary, [tabindex]:not(canvas)") && event.target !== document.body;
  if ((key === "Enter" || key === " ") && onButton && event.target.id !== "grid") return null;
  if (/^(Arrow|Home|End|Page)/.test(key) && event.target.closest("#right, #left, #closeup-values") && !dialog) return null;
  const step = (by) => () => app.cursor.move(grid.cursor + by, event.shiftKey);
  const page = grid.rowsOnScreen() * grid.columns;
  const moves = {
    ArrowLeft: step(-1),
    ArrowRight: step(1),
    ArrowUp: step(-grid.columns),
    ArrowDown: step(grid.columns),
    PageUp: step(-page),
    PageDown: step(page),
    Home: () => app.cursor.move(0, event.shiftKey),
    End: () => app.cursor.move(grid.count - 1, event.shiftKey),
  };
  const others = {
    "/": () => { byId("jump-to").focus(); byId("jump-to").select(); },
    "?": () => byId("help").showModal(),
    "+": () => grid.zoom(grid.tile * 1.25),
    "=": () => grid.zoom(grid.tile * 1.25),
    "-": () => grid.zoom(grid.tile / 1.25),
    Enter: () => app.open(),
    " ": () => app.chosen.toggle(grid.itemAt(grid.cursor)),
    "Ctrl a": () => app.chosen.all(),
    "Ctrl z": () => app.source.alive && app.facts.labelled && app.chosen.undo(),
    f: () => { byId("choice").open = true; byId("where").focus(); },
    i: () => app.invert(),
    t: () => app.turnTheme(),
    l: () => { app.panels.open("chosen"); byId("new-label")?.focus(); },
  };
  const digit = /^Digit(\d)$|^Numpad(\d)$/.exec(event.code);
  if (digit && app.facts.labelled && !key.startsWith("Ctrl")) {
    return () => app.query.toggleClass(Number(digit[1] ?? digit[2]), event.shiftKey);
  }
  return moves[key] ?? (dialog ? null : others[key]);
}

// One thing at a time: the field, the panel on a narrow screen, the selection, the filter.
function escape(app, event, inField, dialog) {
  if (dialog) return;
  event.preventDefault();
  if (inField) app.grid.canvas.focus();
  else if (app.panels.close()) app.grid.canvas.focus();
  else if (app.chosen.count) app.chosen.clear();
  else app.query.showAll();
}
