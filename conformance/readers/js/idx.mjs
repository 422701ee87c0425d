// idx.mjs: read IDX files, the tensor format of MNIST. For browsers and Node: no imports.
//
//     import { parse } from "./idx.mjs";
//     const buffer = await (await fetch("t10k-labels-idx1-ubyte")).arrayBuffer();
//     const { type, shape, data } = parse(buffer);        // "uint8", [10000], Uint8Array

const TYPES = {
  0x08: ["uint8", Uint8Array],
  0x09: ["int8", Int8Array],
  0x0b: ["int16", Int16Array],
  0x0c: ["int32", Int32Array],
  0x0d: ["float32", Float32Array],
  0x0e: ["float64", Float64Array],
};

/** A file that is not a right IDX file: what is wrong with it, and at which byte. */
export class IdxError extends Error {
  constructor(code, offset, message) {
    super(`${message} (at byte ${offset})`);
    this.name = "IdxError";
    this.code = code;
    this.offset = offset;
  }
}

/**
 * Parse a whole IDX file.
 *
 * @param {ArrayBuffer | Uint8Array} source the bytes of the file, not compressed; left untouched.
 * @returns {{type: string, shape: number[], data: TypedArray}} the elements in native byte order
 *     and C order (the last index varies fastest), in memory of their own.
 * @throws {IdxError}
 */
export function parse(source) {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  const [type, ArrayType, shape] = parseHeader(bytes);
  const offset = 4 + 4 * shape.length;
  // The header is not believed: its product may be beyond what a number holds exactly.
  const nbytes = shape.reduce((n, d) => n * BigInt(d), BigInt(ArrayType.BYTES_PER_ELEMENT));
  const there = BigInt(bytes.length - offset);
  if (there < nbytes) {
    const text = `${nbytes} data bytes declared, ${there} there`;
    throw new IdxError("truncated", bytes.length, text);
  }
  if (there > nbytes) {
    const text = `${there - nbytes} bytes behind the data`;
    throw new IdxError("trailing-data", offset + Number(nbytes), text);
  }
  const data = toNative(bytes.slice(offset), ArrayType.BYTES_PER_ELEMENT);
  return { type, shape, data: new ArrayType(data.buffer) };
}

function parseHeader(bytes) {
  if (bytes.length === 0) throw new IdxError("empty", 0, "the file is empty");
  if (bytes[0] !== 0 || bytes[1] > 0) {
    throw new IdxError("bad-magic", 0, "the first two bytes are not zero: it is no IDX file");
  }
  if (bytes.length > 2 && !(bytes[2] in TYPES)) {
    throw new IdxError("unknown-type", 2, `${bytes[2]} is none of the six element types`);
  }
  const ndim = bytes[3];
  if (bytes.length < 4 || bytes.length < 4 + 4 * ndim) {
    throw new IdxError("short-header", bytes.length, "the file ends inside its header");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const shape = Array.from({ length: ndim }, (_, axis) => view.getUint32(4 + 4 * axis));
  return [...TYPES[bytes[2]], shape];
}

/** Turn the byte order in place. Bytes are moved, not numbers: those could change a NaN. */
function toNative(bytes, size) {
  const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
  if (size === 1 || !littleEndian) return bytes;
  for (let start = 0; start < bytes.length; start += size) {
    for (let i = start, j = start + size - 1; i < j; i++, j--) {
      const byte = bytes[i];
      bytes[i] = bytes[j];
      bytes[j] = byte;
    }
  }
  return bytes;
}
