// What items and labels are called: the labels as they are by now, and others to compare with.

export class Names {
  constructor(app) {
    this.app = app;
    this.forget();
  }

  forget() {
    this.labels = this.others = this.changed = null;
  }

  labelOf(item) {
    return this.labels?.[item] ?? null;
  }

  otherOf(item) {
    return this.others?.[item] ?? null;
  }

  isChanged(item) {
    return this.changed?.has(item) ?? false;
  }

  differs(item) {
    return Boolean(this.others && this.labels && this.others[item] !== this.labels[item]);
  }

  rival() {
    return this.app.facts.rivals[this.app.state.rival] ?? "Other";
  }

  classOf(label) {
    return this.app.facts.classes?.[label] ?? String(label);
  }

  labelNamed(text) {
    if (/^-?\d{1,9}$/.test(text)) return Number(text);
    const label = this.app.facts.classes?.findIndex((name) => name === text && name !== null) ?? -1;
    return label < 0 ? null : label;
  }

  captionOf(item) {
    const label = this.labelOf(item), other = this.otherOf(item);
    if (label === null) return "";
    const name = this.classOf(label);
    return other !== null && other !== label ? `${name} → ${this.classOf(other)}` : name;
  }

  numberOf(item) {
    return this.app.facts.numbers?.[item] ?? item;
  }

  of(item) {
    const label = this.captionOf(item);
    return `item ${this.numberOf(item).toLocaleString("en")}${label ? `, label ${label}` : ""}`;
  }

  // How many items have each label: [[label, count], …].
  counts() {
    const counts = new Map();
    for (const label of this.labels) counts.set(label, (counts.get(label) ?? 0) + 1);
    this.app.facts.classes?.forEach((name, label) => name !== null && !counts.has(label) && counts.set(label, 0));
    return [...counts].sort((a, b) => a[0] - b[0]).slice(0, 300);
  }

  // Labels that were given since the file was written.
  relabel(now) {
    this.changed = new Set();
    for (const [item, label, stored] of now) {
      if (this.labels instanceof Uint8Array && (label > 255 || label < 0)) this.labels = Int32Array.from(this.labels);
      this.labels[item] = label;
      if (label !== stored) this.changed.add(item);
    }
  }
}
