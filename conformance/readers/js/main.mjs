// main.mjs: the JavaScript reader in the line protocol of the conformance corpus (../../README.md).
//
//     python -m idxfile.conformance node conformance/readers/js/main.mjs

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { IdxError, parse } from "./idx.mjs";

const MOST_HEX_NBYTES = 4096;

function bigEndian(data) {
  const bytes = Buffer.from(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
  const little = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
  if (little && data.BYTES_PER_ELEMENT === 2) bytes.swap16();
  if (little && data.BYTES_PER_ELEMENT === 4) bytes.swap32();
  if (little && data.BYTES_PER_ELEMENT === 8) bytes.swap64();
  return bytes;
}

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (~crc >>> 0).toString(16).padStart(8, "0");
}

function answer(path) {
  let bytes;
  try {
    bytes = readFileSync(path);
  } catch {
    return "error open";
  }
  try {
    const { type, shape, data } = parse(bytes);
    const elements = bigEndian(data);
    const form =
      elements.length <= MOST_HEX_NBYTES
        ? ["hex", elements.toString("hex")]
        : ["crc", elements.length, crc32(elements)];
    return ["ok", type, shape.length, ...shape, ...form].join(" ");
  } catch (error) {
    if (!(error instanceof IdxError)) throw error;
    return `error ${error.code} ${error.offset}`;
  }
}

for await (const path of createInterface({ input: process.stdin })) {
  console.log(answer(path));
}
