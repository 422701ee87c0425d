// What is looked at, kept in the address: the same link shows the same view.

const KINDS = {
  set: Number, classes: String, from: String, to: String, where: String, sort: String,
  seed: String, rival: String, tile: Number, item: Number, panel: String, invert: Number,
  low: Number, high: Number,
};
const QUERY = ["classes", "from", "to", "where", "sort", "seed", "rival"];

export function stateOf(words) {
  const state = {};
  for (const [name, kind] of Object.entries(KINDS)) {
    const word = words.get(name);
    if (word !== null && word !== "" && !(kind === Number && !isFinite(word))) state[name] = kind(word);
  }
  return state;
}

export function wordsOf(state) {
  const words = new URLSearchParams();
  for (const name of Object.keys(KINDS)) {
    const value = state[name];
    if (value !== undefined && value !== "" && value !== null) words.set(name, value);
  }
  return words.toString().replaceAll("%2C", ",");
}

// The part of a state that chooses items, as the source understands it.
export function queryOf(state) {
  return Object.fromEntries(QUERY.filter((name) => state[name] !== undefined && state[name] !== "")
    .map((name) => [name, state[name]]));
}

// Whether a state shows all items as they lie.
export function isNatural(state) {
  return !["classes", "from", "to", "where", "sort"].some((name) => state[name]);
}

export function classesOf(state) {
  return state.classes ? state.classes.split(",").map(Number) : [];
}

let pending = 0;

// Write the state into the address, soon.
export function remember(state) {
  clearTimeout(pending);
  pending = setTimeout(() => history.replaceState(null, "", `#${wordsOf(state)}`), 150);
}
