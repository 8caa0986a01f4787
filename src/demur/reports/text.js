/* Words, numbers and elements. Every string of the facts passes through clean() and becomes a text node, never markup. */

const NONE = "–";
const byId = (id) => document.getElementById(id);
const put = (id, text) => byId(id).replaceChildren(clean(text));

/* What cannot be seen, or turns the direction of what follows, must not deceive a reader. */
function visible(sign) {
  if (sign === "\n" || sign === "\t") return sign;
  return sign < " " ? String.fromCharCode(0x2400 + sign.charCodeAt(0)) : "\ufffd";
}
function clean(text) {
  const lines = String(text).replace(/\r\n?|[\u2028\u2029]/g, "\n");
  return lines.replace(/\p{Bidi_Control}/gu, "").replace(/\p{Cc}/gu, visible);
}
function short(text, most) {
  const line = clean(text).replace(/\s+/g, " ");
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/* Attributes are a class, or names with values; children are elements, texts, lists of them, or null for none. */
function fill(node, attributes, ...children) {
  const named = typeof attributes === "string" ? { class: attributes } : attributes;
  for (const [name, value] of Object.entries(named)) {
    if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value); // the page's policy lets no attribute set a style
  }
  for (const child of children.flat()) if (child !== null) node.append(child instanceof Node ? child : clean(child));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, ...children);
function draw(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, ...children);
}

/* Numbers. null is a number that is not defined. */

const known = (value) => typeof value === "number" && Number.isFinite(value);
function fixed(value, places, whole = 1) {
  if (!known(value)) return NONE;
  const text = value.toFixed(places);
  const rounded = Number(text);
  // 0.9996 must not read as 1, nor 0.0004 as 0.
  const blunt = (rounded === 0 || rounded === whole) && Math.abs(rounded - value) > 1e-9;
  return blunt ? String(Number(value.toPrecision(rounded ? places + String(whole).length + 1 : 2))) : text;
}
const percent = (share) => (known(share) ? `${fixed(share * 100, 1, 100)}\u00a0%` : NONE);
const plainPercent = (share) => (known(share) ? `${Number((share * 100).toFixed(4))}\u00a0%` : NONE);
const range = ([low, high]) => (known(low) && known(high) ? `${fixed(low * 100, 1, 100)} to ${percent(high)}` : NONE);
const number = (value) => (known(value) ? String(Number(value.toPrecision(5))) : NONE);
const chance = (p) => (known(p) && p < 0.001 ? "< 0.001" : known(p) ? String(Number(p.toPrecision(2))) : NONE);
const level = (alpha) => String(Number(alpha.toFixed(6)));
const many = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/* An operating point in words. */

const atAlpha = (point) => `alpha = ${level(point.alpha)}`;
const needs = (point) => `needs ${point.needs}; abstains always`;
// Ties and scarce errors make errors fewer, so the law of their number is only a ceiling.
const usual = (observed) => `usually at most ${percent(observed.usual_at_most)} (95\u00a0%)`;
/* A draw that parts equals says nothing to a reader, so jitter is not written out. */
function thresholdText({ feasible, nowhere, groups, threshold: [first, second] }) {
  if (!feasible || nowhere) return "none";
  const more = groups ? " or more" : "";
  if (first === 0 && !known(second)) return `0${more}`;
  const tie = known(second) && facts.key[1] !== "jitter";
  return (tie ? `${fixed(first, 3)} / ${number(second)}` : fixed(first, 3)) + more;
}
/* What decides among votes of equal confidence; blank where they stay together. */
function tiesText() {
  const names = facts.key.slice(1).map((name) => name.replaceAll("_", " "));
  return names.length ? `; among equals ${names.join(", then ")} decides` : "";
}
