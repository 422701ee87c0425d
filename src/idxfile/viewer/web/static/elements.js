// Elements, made of names, properties and children. Texts stay texts: nothing is ever markup.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !name.startsWith("aria")) element[name] = value;
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

export function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 1e5 || (Math.abs(value) < 1e-3 && value)
    ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

// A list of names and what is known of each.
export function factList(rows) {
  return make("dl", { className: "facts" }, ...rows.filter((row) => row[1] !== null && row[1] !== undefined)
    .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// Hand a file to the user.
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
