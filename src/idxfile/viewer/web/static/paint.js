// From values to pixels: how an item of any shape becomes a picture.

const MOST_TEXELS = 256;

// Where in an item each texel of its picture lies. Colour (…, 3) is colour, a vector is a curve,
// a number is a swatch, and what has more dimensions lies side by side as slices.
export function layoutOf(shape) {
  const size = shape.reduce((a, b) => a * b, 1);
  if (shape.length === 0) return { kind: "number", width: 1, height: 1, size };
  if (shape.length === 1) {
    return { kind: "curve", width: Math.max(1, Math.min(shape[0], 128)), height: 48, size };
  }
  const coloured = shape.length > 2 && (shape.at(-1) === 3 || shape.at(-1) === 1);
  const channels = coloured ? shape.at(-1) : 1;
  const [rows, columns] = coloured ? shape.slice(-3, -1) : shape.slice(-2);
  const slices = shape.slice(0, coloured ? -3 : -2).reduce((a, b) => a * b, 1);
  const across = Math.max(1, Math.ceil(Math.sqrt(slices)));
  const seam = slices > 1 ? 1 : 0;
  const fullWidth = across * (columns + seam) - seam;
  const fullHeight = Math.ceil(slices / across) * (rows + seam) - seam;
  const step = Math.max(1, Math.ceil(Math.max(fullWidth, fullHeight) / MOST_TEXELS));
  const width = Math.max(1, Math.ceil(fullWidth / step));
  const height = Math.max(1, Math.ceil(fullHeight / step));
  const offsets = new Int32Array(width * height).fill(-1);
  for (let y = 0, n = 0; y < height; y++) {
    for (let x = 0; x < width; x++, n++) {
      const row = (y * step) % (rows + seam), column = (x * step) % (columns + seam);
      const slice = Math.floor((y * step) / (rows + seam)) * across + Math.floor((x * step) / (columns + seam));
      if (row < rows && column < columns && slice < slices) {
        offsets[n] = ((slice * rows + row) * columns + column) * channels;
      }
    }
  }
  return { kind: "picture", width, height, size, channels, offsets, step, rows, columns, slices };
}

// Paint the item that begins at `base` of `values` into 32-bit pixels, at `at`, `stride` a row.
export function paintItem(pixels, at, stride, values, base, layout, tone) {
  if (layout.kind === "curve") paintCurve(pixels, at, stride, values, base, layout, tone);
  else if (layout.kind === "number") pixels[at] = grey(level(values[base], tone));
  else paintPicture(pixels, at, stride, values, base, layout, tone);
}

function level(value, { low, scale, invert }) {
  const shade = (value - low) * scale;
  const cut = shade > 255 ? 255 : shade > 0 ? (shade + 0.5) | 0 : 0; // NaN is 0
  return invert ? 255 - cut : cut;
}

function grey(shade) {
  return (0xff000000 | (shade << 16) | (shade << 8) | shade) >>> 0;
}

function paintPicture(pixels, at, stride, values, base, layout, tone) {
  const { width, height, offsets, channels } = layout;
  if (channels === 1 && values instanceof Uint8Array) {
    const shades = (tone.shades ??= Uint32Array.from({ length: 256 }, (_, value) => grey(level(value, tone))));
    for (let y = 0, n = 0; y < height; y++) {
      for (let x = 0, to = at + y * stride; x < width; x++, n++, to++) {
        if (offsets[n] >= 0) pixels[to] = shades[values[base + offsets[n]]];
      }
    }
    return;
  }
  for (let y = 0, n = 0; y < height; y++) {
    let to = at + y * stride;
    for (let x = 0; x < width; x++, n++, to++) {
      const offset = offsets[n];
      if (offset < 0) continue;
      const from = base + offset;
      pixels[to] = channels === 3
        ? (0xff000000 | (level(values[from + 2], tone) << 16) | (level(values[from + 1], tone) << 8)
          | level(values[from], tone)) >>> 0
        : grey(level(values[from], tone));
    }
  }
}

function paintCurve(pixels, at, stride, values, base, layout, tone) {
  const { width, height, size } = layout;
  const paper = grey(tone.invert ? 255 : 16);
  const ink = grey(tone.invert ? 48 : 224);
  const plain = { ...tone, invert: false };
  const zero = level(0, plain) / 255;
  for (let x = 0; x < width; x++) {
    const start = Math.floor((x * size) / width);
    const stop = Math.max(start + 1, Math.floor(((x + 1) * size) / width));
    let low = Infinity, high = -Infinity;
    for (let n = start; n < stop && n < size; n++) {
      const value = level(values[base + n], plain) / 255;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const top = Math.round((1 - Math.max(high, zero)) * (height - 1));
    const bottom = Math.round((1 - Math.min(low, zero)) * (height - 1));
    for (let y = 0; y < height; y++) {
      pixels[at + y * stride + x] = y >= top && y <= bottom ? ink : paper;
    }
  }
}

// How values become shades: `window` is [low, high].
export function toneOf(window, invert) {
  const [low, high] = window;
  return { low, scale: 255 / (high - low || 1), invert };
}

// One item on a canvas of its own size in texels.
export function paintCanvas(canvas, values, layout, tone, base = 0) {
  canvas.width = layout.width;
  canvas.height = layout.height;
  const image = new ImageData(layout.width, layout.height);
  paintItem(new Uint32Array(image.data.buffer), 0, layout.width, values, base, layout, tone);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// A colour for a class, the same everywhere; far from its neighbours.
export function classColour(label, lightness = 50) {
  return `hsl(${(label * 137.508 + 220) % 360} 38% ${lightness}%)`;
}
