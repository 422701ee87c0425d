// The panels on the right, one of them open, and the colours of the page.

import { byId } from "./elements.js";

const PANELS = ["item", "numbers", "compare", "chosen"];
const THEME_KEY = "idx-theme";

export class Panels {
  constructor(app) {
    this.app = app;
    for (const panel of PANELS) byId(`tab-${panel}`).addEventListener("click", () => this.open(panel));
    byId("tabs").addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.stopPropagation();
      const now = PANELS.indexOf(document.body.dataset.panel);
      const next = PANELS[(now + by + PANELS.length) % PANELS.length];
      this.open(next);
      byId(`tab-${next}`).focus();
    });
    byId("right-close").addEventListener("click", () => this.close());
  }

  open(panel, byHand = true) {
    const { app } = this;
    const name = PANELS.includes(panel) ? panel : "item";
    document.body.dataset.panel = name;
    if (byHand) document.body.classList.add("panel-open");
    for (const other of PANELS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      byId(`panel-${other}`).hidden = other !== name;
    }
    if (name === "compare") app.compare.show();
    if (byHand) {
      app.state.panel = name === "item" ? undefined : name;
      app.changedState();
    }
  }

  // On a narrow screen the panel lies over the items; whether it did.
  close() {
    const open = document.body.classList.contains("panel-open") && innerWidth <= 760;
    document.body.classList.remove("panel-open");
    return open;
  }
}

// The theme chosen last time; a page from disk may have no memory.
export function rememberedTheme() {
  let theme = null;
  try {
    theme = localStorage.getItem(THEME_KEY);
  } catch { /* none */ }
  if (theme) document.documentElement.dataset.theme = theme;
}

export function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem(THEME_KEY, root.dataset.theme);
  } catch { /* none */ }
}
