/* How charts are drawn: a frame with axes, curves, direct labels, and marks that move with alpha. */

const shareText = (value) => `${Math.round(value * 1000) / 10}\u00a0%`;
const SWATCH = { viewBox: "0 0 26 12", "aria-hidden": "true" };

const STEPS = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5,
];
function steps([low, high], most) {
  const span = high - low || 1;
  const size = STEPS.find((step) => span / step <= most) ?? span;
  const first = Math.ceil(low / size - 1e-9);
  const count = Math.max(0, Math.floor(high / size + 1e-9) - first + 1);
  return Array.from({ length: count }, (_, index) => Number(((first + index) * size).toFixed(6)));
}
/* Where an axis of accuracies begins: a multiple of 5 % under all that is shown. */
function floorOf(...lists) {
  const lowest = Math.min(0.95, ...lists.flat().filter(known));
  return Math.max(0, Math.floor(lowest * 20 - 1e-9) / 20);
}

/* A picture with axes, or another plot in the picture `svg`. X and Y turn values into places. */
function frame(width, height, { svg, x, y, xTitle, yTitle, xText = String, yText = String, ...more }) {
  const { left = 46, top = 24, bottom = height - 42 } = more;
  const right = width - 20;
  const scale = ([low, high], from, to) => {
    const span = high - low || 1;
    return (value) => from + ((Math.min(Math.max(value, low), high) - low) / span) * (to - from);
  };
  const plot = { left, right, top, bottom, X: scale(x, left, right), svg };
  plot.svg ??= draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
  plot.add = (tag, attributes, ...children) => plot.svg.appendChild(draw(tag, attributes, ...children));
  plot.line = (kind, x1, y1, x2, y2) => plot.add("line", { class: kind, x1, y1, x2, y2 });
  plot.rect = (kind, x, y, width, height) => plot.add("rect", { class: kind, x, y, width, height });
  plot.text = (text, x, y, anchor = "middle", kind = "") => {
    return plot.add("text", { class: kind, x, y, "text-anchor": anchor }, text);
  };
  plot.label = (text, x, y, colour, anchor = "middle") => {
    plot.text(text, x, y, anchor, "label").style.fill = `var(--${colour})`;
  };
  plot.titleEnd = (yTitle ?? "").length * 6.3 + 10;
  if (y) {
    plot.Y = scale(y, bottom, top);
    for (const value of steps(y, Math.max(2, Math.floor((bottom - top) / 42)))) {
      plot.line("grid", left, plot.Y(value), right, plot.Y(value));
      plot.text(yText(value), left - 6, plot.Y(value) + 4, "end");
    }
    plot.text(yTitle, 0, top - 12, "start", "title");
  }
  plot.line("axis", left, bottom, right, bottom);
  if (xTitle) {
    for (const value of steps(x, Math.max(3, Math.floor((right - left) / 64)))) {
      plot.line("axis", plot.X(value), bottom, plot.X(value), bottom + 4);
      plot.text(xText(value), plot.X(value), bottom + 17);
    }
    plot.text(xTitle, right, bottom + 35, "end", "title");
  }
  return plot;
}

/* Curves are lists of dots [x, y, joined to the one before]. A series is {name, colour, dots}, perhaps {wide, dash}. */

function trace(plot, xs, ys, stepped = false) {
  const dots = [];
  let last = null;
  for (const [index, value] of xs.entries()) {
    const x = plot.X(value);
    const end = !known(ys[index]);
    if (last !== null && (stepped || end)) dots.push([x, last, true]);
    if (!end) dots.push([x, plot.Y(ys[index]), last !== null]);
    last = end ? null : plot.Y(ys[index]);
  }
  return dots;
}
const straight = (plot, y) => trace(plot, [-Infinity, Infinity], [y, y]);
const pathOf = (dots) => dots.map(([x, y, joined]) => `${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
function strokeOf({ colour, wide, dash }, d) {
  const style = `stroke: var(--${colour}); stroke-dasharray: ${dash ?? "none"}`;
  return draw("path", { class: wide ? "curve wide-curve" : "curve", style, d });
}
function curve(plot, series) {
  plot.svg.append(strokeOf(series, pathOf(series.dots)));
  if (series.dots.length !== 1) return;
  const [[cx, cy]] = series.dots;
  plot.add("circle", { cx, cy, r: 3, style: `fill: var(--${series.colour})` });
}
function area(plot, xs, low, high, kind) {
  const up = [];
  const down = [];
  for (const [index, x] of xs.entries()) {
    if (!known(low[index]) || !known(high[index])) continue;
    up.push([plot.X(x), plot.Y(high[index]), up.length > 0]);
    down.unshift([plot.X(x), plot.Y(low[index]), true]);
  }
  if (up.length > 1) plot.add("path", { class: kind, d: `${pathOf([...up, ...down])}Z` });
}

/* Direct labels: each where its own curve is flat and the others are far; what finds no place goes into a key below. */

const CELL = 4;
const HALF_SIGN = 3.8;
/* The lowest and highest place of a curve in each column of a few pixels. */
function columnsOf(dots, plot) {
  const columns = new Array(Math.floor((plot.right - plot.left) / CELL) + 1).fill(null);
  const add = (x, y) => {
    const at = Math.round((x - plot.left) / CELL);
    const [low, high] = columns[at] ?? [y, y];
    if (at in columns) columns[at] = [Math.min(low, y), Math.max(high, y)];
  };
  for (const [index, [x, y, joined]] of dots.entries()) {
    add(x, y);
    if (!joined) continue;
    const [fromX, fromY] = dots[index - 1];
    for (let at = fromX + 2; at < x; at += 2) add(at, fromY + ((y - fromY) * (at - fromX)) / (x - fromX));
  }
  return columns;
}
/* How high and low a curve reaches between two columns, and whether it is there in most of them. */
function reach(columns, from, to) {
  const filled = columns.slice(Math.max(0, from), to + 1).filter((column) => column !== null);
  const low = Math.min(...filled.map((column) => column[0]));
  const high = Math.max(...filled.map((column) => column[1]));
  return { low, high, whole: filled.length >= (to - from + 1) * 0.8 };
}
const overlap = (a, b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];
/* The best place of one label, as {x, y, box}, or null; `own` are the columns of its curve, `others` of the rest. */
function placeOf(plot, name, own, others, taken) {
  const half = name.length * HALF_SIGN + 3;
  let best = null;
  for (let x = plot.left + half; x <= plot.right - half; x += 8) {
    const between = [x - half, x + half].map((edge) => Math.round((edge - plot.left) / CELL));
    const mine = reach(own, ...between);
    if (!mine.whole || mine.high - mine.low > 40) continue;
    const theirs = others.map((other) => reach(other, ...between));
    for (const y of [mine.low - 10, mine.high + 12]) {
      const box = [x - half, y - 9, x + half, y + 7];
      if (box[1] < plot.top - 4 || box[3] > plot.bottom || taken.some((other) => overlap(box, other))) continue;
      const gaps = theirs.map(({ low, high }) => Math.max(low - box[3], box[1] - high, -1));
      const gap = Math.min(60, ...gaps);
      const value = gap - (mine.high - mine.low) * 0.5;
      if (gap > 1 && value > (best?.value ?? -Infinity)) best = { value, x, y: y + 3, box };
    }
  }
  return best;
}
/* Write the names of curves beside them; returns a key of all where one has no place. */
function labelCurves(plot, series, taken = []) {
  const columns = series.map(({ dots }) => columnsOf(dots, plot));
  let homeless = 0;
  for (const [index, { name, colour }] of series.entries()) {
    const others = columns.filter((_, other) => other !== index);
    const place = placeOf(plot, name, columns[index], others, taken);
    if (place === null) {
      homeless++;
      continue;
    }
    taken.push(place.box);
    plot.label(name, place.x, place.y, colour);
  }
  return homeless ? keyTo(series) : null;
}
/* Write the name of an area where it is thick; false where it is too thin everywhere. */
function labelArea(plot, xs, { name, low, high }, taken) {
  const half = name.length * HALF_SIGN + 4;
  const places = xs.map(plot.X);
  let best = null;
  for (const [index, x] of places.entries()) {
    if (x - half < plot.left || x + half > plot.right) continue;
    const near = places.flatMap((other, at) => (Math.abs(other - x) <= half ? [at] : []));
    const top = Math.max(...near.map((at) => plot.Y(high[at])));
    const bottom = Math.min(...near.map((at) => plot.Y(low[at])));
    const thick = Math.min(bottom - top, 60);
    const value = thick - Math.abs(index / xs.length - 0.55) * 10;
    if (thick >= 13 && value > (best?.value ?? -Infinity)) best = { value, x, y: (top + bottom) / 2 };
  }
  if (best === null) return false;
  taken.push([best.x - half, best.y - 9, best.x + half, best.y + 7]);
  plot.text(name, best.x, best.y + 4, "middle", "title");
  return true;
}
function keyTo(series) {
  const sign = (one) => {
    return one.fill ? draw("rect", { class: one.fill, width: 26, height: 12 }) : strokeOf(one, "M0 6H26");
  };
  return signKey(series.map((one) => [sign(one), one.name]));
}
function signKey(signs) {
  const items = signs.map(([sign, name]) => el("li", {}, draw("svg", SWATCH, sign), el("span", "data", name)));
  return el("ul", "key", items);
}

/* The mark of the current alpha: a rule with its name above the plot, and dots on the curves. */

function markOn(plot, dots = 0) {
  const words = draw("text", { y: plot.top - 12, "text-anchor": "middle" });
  const rule = draw("line", { class: "rule", y1: plot.top - 6, y2: plot.bottom });
  const spots = Array.from({ length: dots }, (_, place) => {
    return draw("circle", place ? { class: "ring", r: 4.5 } : { class: "dot", r: 5.5 });
  });
  plot.add("g", "mark-alpha", rule, words, spots);
  return (x, text, ...values) => {
    // The words stay right of the axis title and inside the picture.
    const half = text.length * 3.5;
    words.textContent = text;
    words.setAttribute("x", Math.min(Math.max(plot.X(x), plot.titleEnd + half), plot.right + 18 - half));
    fill(rule, { x1: plot.X(x), x2: plot.X(x) });
    for (const [place, spot] of spots.entries()) {
      const [spotX, spotY] = Array.isArray(values[place]) ? values[place] : [x, values[place]];
      const defined = known(spotX) && known(spotY);
      spot.classList.toggle("hide", !defined);
      if (defined) fill(spot, { cx: plot.X(spotX), cy: plot.Y(spotY) });
    }
  };
}
