// The IDX format: its header, and elements with the most significant byte first.

const ELEMENTS = {
  0x08: "uint8",
  0x09: "int8",
  0x0b: "int16",
  0x0c: "int32",
  0x0d: "float32",
  0x0e: "float64",
};

const READERS = {
  uint8: [1, Uint8Array],
  int8: [1, Int8Array],
  int16: [2, Int16Array, "getInt16"],
  int32: [4, Int32Array, "getInt32"],
  uint32: [4, Uint32Array, "getUint32"],
  float32: [4, Float32Array, "getFloat32"],
  float64: [8, Float64Array, "getFloat64"],
  int64: [8, Float64Array, "getBigInt64"],
  uint64: [8, Float64Array, "getBigUint64"],
};

export function bytesOf(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function elementBytes(dtype) {
  return READERS[dtype][0];
}

// Big-endian elements as a typed array of this machine.
export function decoded(buffer, dtype) {
  const [size, Type, getter] = READERS[dtype];
  if (size === 1) return new Type(buffer);
  const view = new DataView(buffer);
  const values = new Type(buffer.byteLength / size);
  const wide = dtype.endsWith("int64");
  for (let n = 0; n < values.length; n++) {
    const value = view[getter](n * size);
    values[n] = wide ? Number(value) : value;
  }
  return values;
}

// What a header says: its type, its dimensions, where the elements begin. Null where it is none.
export function parsedHeader(bytes) {
  if (bytes.length < 4 || bytes[0] || bytes[1] || !(bytes[2] in ELEMENTS)) return null;
  const offset = 4 + 4 * bytes[3];
  if (bytes.length < offset) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const shape = Array.from({ length: bytes[3] }, (_, n) => view.getUint32(4 + 4 * n));
  return { dtype: ELEMENTS[bytes[2]], shape, offset };
}

// The bytes of a header in groups, each with its meaning: {start, stop, name, text}.
export function headerFields(bytes) {
  if (isLush(bytes)) return lushFields(bytes);
  const fields = [];
  const add = (start, stop, name, text) => {
    if (start < bytes.length) fields.push({ start, stop: Math.min(stop, bytes.length), name, text });
  };
  const zero = !bytes[0] && !bytes[1];
  add(0, 2, "zero", zero ? "two zero bytes, as every IDX file begins" : "should be 00 00");
  if (!zero) {
    add(2, bytes.length, "unknown", "no IDX file: nothing is known of these bytes");
    return fields;
  }
  const type = ELEMENTS[bytes[2]];
  add(2, 3, "type", type ? `element type ${type}` : "no element type of IDX");
  add(3, 4, "dimensions", `${bytes[3]} ${bytes[3] === 1 ? "dimension" : "dimensions"} follow`);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let n = 0; n < (bytes[3] ?? 0); n++) {
    const start = 4 + 4 * n;
    if (start + 4 > bytes.length) {
      add(start, start + 4, `dimension ${n}`, "cut off");
      break;
    }
    const role = n === 0 ? "items" : `dimension ${n}`;
    add(start, start + 4, role, `${role}: ${view.getUint32(start).toLocaleString("en")}`);
  }
  const end = 4 + 4 * (bytes[3] ?? 0);
  add(end, bytes.length, "elements", "the elements begin here");
  return fields;
}

function isLush(bytes) {
  return (bytes[1] === 0x4c && bytes[2] === 0x3d && bytes[3] === 0x1e)
    || (bytes[0] === 0x1e && bytes[1] === 0x3d && bytes[2] === 0x4c);
}

function lushFields(bytes) {
  const little = bytes[3] === 0x1e;
  const fields = [{ start: 0, stop: 4, name: "magic", text: "a Lush / EBLearn matrix, and its type" }];
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let start = 4; start + 4 <= bytes.length; start += 4) {
    const value = view.getInt32(start, little).toLocaleString("en");
    const text = start === 4 ? `dimensions: ${value}` : `dimension ${start / 4 - 2}: ${value}`;
    fields.push({ start, stop: start + 4, name: text.split(":")[0], text });
  }
  return fields;
}
