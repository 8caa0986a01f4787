// Words and elements. Whatever a model or a person wrote becomes a text node, never markup.

/** What cannot be seen, or turns the direction of what follows, is named, so that it deceives nobody. */
export function clean(text) {
  const lines = String(text).replace(/\r\n?|[\u2028\u2029]/g, "\n");
  return lines.replace(/[\p{Bidi_Control}\u200b\u2060\ufeff\p{Cc}]/gu, (sign) =>
    sign === "\n" || sign === "\t" ? sign : `[U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}

/** An element with a class and children: elements, texts, or null for none. */
export function el(tag, kind, ...children) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  for (const child of children.flat()) if (child !== null) made.append(child instanceof Node ? child : clean(child));
  return made;
}

/** A button that does something. */
export function button(words, kind, act) {
  const made = el("button", kind, words);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

export const byId = (id) => document.getElementById(id);
export const known = (value) => typeof value === "number" && Number.isFinite(value);
export const percent = (share) => (known(share) ? `${Number((share * 100).toFixed(1))}\u00a0%` : "–");
export const number = (value) => (known(value) ? String(Number(value.toPrecision(4))) : "–");
export const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** The beginning of a text, in one line. */
export function short(text, most) {
  const line = clean(text.slice(0, 4 * most))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** How long ago a time is. */
export function ago(at) {
  const minutes = Math.max(0, Math.round((Date.now() - at) / 60_000));
  if (minutes === 0) return "just now";
  if (minutes < 60) return `${many(minutes, "minute")} ago`;
  if (minutes < 48 * 60) return `${many(Math.round(minutes / 60), "hour")} ago`;
  return `${many(Math.round(minutes / 1440), "day")} ago`;
}
