// Where the page gets everything from: the server that it came from, or the page itself.

const TOKEN = "idx-token";

// The token came in the address; from there it goes into this browser's memory of this server.
export function takeToken(words) {
  const token = words.get("token");
  words.delete("token");
  try {
    if (token) localStorage.setItem(TOKEN, token);
    return token ?? localStorage.getItem(TOKEN) ?? "";
  } catch {
    return token ?? "";
  }
}

export class NotYet extends Error {}

export class ServerSource {
  alive = true;

  constructor(token) {
    this.token = token;
    this.set = 0;
  }

  async ask(path, words = {}, options = {}) {
    const query = new URLSearchParams({ set: this.set, ...words });
    const headers = { "X-Idx-Token": this.token, ...options.headers };
    const answer = await fetch(`api/${path}?${query}`, { ...options, headers });
    if (answer.status === 202) throw new NotYet("still counting");
    if (answer.ok) return answer;
    const text = await answer.text();
    let told = text;
    try {
      const { error, hint } = JSON.parse(text);
      told = hint ? `${error}. ${hint}` : error;
    } catch { /* it was no JSON */ }
    throw new Error(told);
  }

  async json(path, words, options) {
    return (await this.ask(path, words, options)).json();
  }

  async bytes(path, words, options) {
    return (await this.ask(path, words, options)).arrayBuffer();
  }

  post(path, body, read = "json") {
    return this[read](path, {}, { method: "POST", body: JSON.stringify(body) });
  }

  async facts(set) {
    this.set = set;
    this.known = await this.json("facts");
    return this.known;
  }

  // Where the elements lie in a file that is given out as it is.
  lies(offset, itemBytes) {
    this.offset = offset;
    this.itemBytes = itemBytes;
  }

  // The bytes of items: a run of neighbours, or any.
  async items(items, signal) {
    const first = items[0], count = items.length;
    const run = items[count - 1] - first === count - 1 && isRun(items);
    if (run && this.offset !== undefined) {
      const start = this.offset + first * this.itemBytes;
      const stop = start + count * this.itemBytes;
      if (stop === start) return new ArrayBuffer(0);
      return this.bytes("raw", {}, { signal, headers: { Range: `bytes=${start}-${stop - 1}` } });
    }
    if (run) return this.bytes("items", { from: first, to: first + count }, { signal });
    return this.bytes("items", {}, { signal, method: "POST", body: Uint32Array.from(items) });
  }

  async labels(rival) {
    const answer = await this.ask("labels", rival === undefined ? {} : { rival });
    const buffer = await answer.arrayBuffer();
    return answer.headers.get("x-type") === "u1" ? new Uint8Array(buffer) : new Int32Array(buffer);
  }

  async order(query) {
    return new Uint32Array(await this.bytes("order", query));
  }

  figures() {
    return this.json("figures");
  }

  startFigures() {
    return this.post("figures", {});
  }

  means() {
    return this.bytes("means");
  }

  item(item) {
    return this.json("item", { item });
  }

  confusion(rival) {
    return this.json("confusion", { rival });
  }

  journal() {
    return this.json("journal");
  }
}

function isRun(items) {
  for (let n = 1; n < items.length; n++) if (items[n] !== items[n - 1] + 1) return false;
  return true;
}

// A page that was exported: everything is in it, and nothing is asked of anybody.
export class PageSource {
  alive = false;

  constructor(text) {
    const { items, labels, ...facts } = JSON.parse(text);
    this.known = { ...facts, journal: null };
    this.data = Uint8Array.from(atob(items), (letter) => letter.charCodeAt(0)).buffer;
    this.given = labels && Int32Array.from(labels);
  }

  async facts() {
    return this.known;
  }

  lies(_, itemBytes) {
    this.itemBytes = itemBytes;
  }

  async items(items) {
    const size = this.itemBytes;
    const bytes = new Uint8Array(items.length * size);
    const all = new Uint8Array(this.data);
    for (let n = 0; n < items.length; n++) {
      bytes.set(all.subarray(items[n] * size, (items[n] + 1) * size), n * size);
    }
    return bytes.buffer;
  }

  async labels() {
    return this.given;
  }

  async order({ classes, from, to, sort, seed }) {
    const wanted = classes && new Set(classes.split(",").map(Number));
    const stop = to === undefined ? this.known.count : Math.min(Number(to), this.known.count);
    let chosen = [];
    for (let n = Number(from ?? 0); n < stop; n++) {
      if (!wanted || wanted.has(this.given?.[n])) chosen.push(n);
    }
    const [backwards, name] = sort?.startsWith("-") ? [-1, sort.slice(1)] : [1, sort];
    if (name === "shuffle") shuffle(chosen, Number(seed ?? 0));
    else if (name === "label") chosen.sort((a, b) => backwards * (this.given[a] - this.given[b]) || a - b);
    else if (backwards < 0) chosen.reverse();
    return Uint32Array.from(chosen);
  }
}

function shuffle(list, seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  for (let n = list.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [list[n], list[other]] = [list[other], list[n]];
  }
}
