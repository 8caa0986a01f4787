// One item: what was asked, the answers with what stands behind them, and the paths side by side.

import { ago, button, byId, clean, el, known, many, number, percent } from "/pages/words.js";

const FIRST = 4_000; // characters of a text that are shown at once

/** A text that anybody may have written; of a long one the beginning, and the rest where it is asked for. */
function written(text, kind) {
  const whole = clean(text);
  const place = el("div", `data ${kind}`);
  if (whole.length <= FIRST) {
    place.append(whole);
    return place;
  }
  place.append(`${whole.slice(0, FIRST)}…`);
  const more = button(`Show all ${whole.length.toLocaleString("en")} characters`, "more", () => {
    place.textContent = whole;
    more.remove();
  });
  return el("div", "", place, more);
}

export function drawItem(item, judge) {
  byId("about").replaceChildren(...about(item));
  byId("asked").replaceChildren(...asked(item));
  byId("decided").replaceChildren(...decided(item));
  byId("answers").replaceChildren(...item.answers.map((answer, at) => drawAnswer(item, answer, at, judge)));
  byId("paths-note").textContent = pathsNote(item);
  byId("paths").replaceChildren(...item.paths.map((path, at) => drawPath(path, at, item.paths.length)));
}

function about(item) {
  const said = [el("strong", "tag", item.reason === "audit" ? "Audit" : "Abstention")];
  if (item.second) said.push(el("span", "tag", "two opinions wanted"));
  if (item.policy) said.push(el("span", "data", item.policy.name));
  said.push(el("span", "", ago(item.at)), ...item.groups.map((name) => el("span", "data", name)));
  return said;
}

function asked(item) {
  const parts = [];
  for (const said of item.messages) parts.push(el("p", "role", said.role), written(said.text, "said"));
  if (item.question !== null) parts.push(written(item.question, "question"));
  if (item.options.length) {
    const rows = item.options.map(({ letter, text }) =>
      el("li", "", el("b", "", `${letter}. `), written(text, "option")),
    );
    parts.push(el("ul", "options", rows));
  }
  const numbers = {};
  for (const { name, text } of item.beside) {
    numbers[name] = (numbers[name] ?? 0) + 1;
    const several = item.beside.filter((other) => other.name === name).length > 1 ? ` ${numbers[name]}` : "";
    const folded = el(
      "details",
      "",
      el("summary", "", `${name}${several}: ${many(text.length, "character")}`),
      written(text, "passage"),
    );
    folded.open = text.length < 1_500;
    parts.push(folded);
  }
  return parts;
}

function decided(item) {
  if (item.vote === null) {
    return ["The vote is hidden until your verdict. Which answer is true? They stand in alphabetical order."];
  }
  const { outcome, confidence, threshold, alpha, reason } = item.vote;
  const told = [el("strong", "", { answered: "Answered", abstained: "Abstained", failed: "No vote" }[outcome])];
  if (known(confidence)) told.push(` · confidence ${number(confidence)}`);
  if (known(threshold)) told.push(` · answers above ${number(threshold)}`);
  if (alpha) told.push(` · alpha ${alpha}`);
  if (outcome === "failed" && reason) told.push(el("span", "data", ` · ${reason}`));
  for (const { verdict, answer } of item.vote.callers) {
    const words = [verdict, answer === null ? null : `the true answer is ${shortened(answer)}`].filter(known);
    told.push(el("span", "data", ` · a caller says: ${words.join(", ")}`));
  }
  return told;
}

function drawAnswer(item, { answer, share, paths }, at, judge) {
  const key = at < 9 ? String(at + 1) : "";
  const choose = button("", "choose", () => judge({ answer }));
  choose.append(el("kbd", "", key || "·"), el("span", "unseen", "is the true answer: "), written(answer, "answer"));
  if (key) choose.setAttribute("aria-keyshortcuts", key);
  choose.dataset.at = at;
  if (item.vote === null) return el("li", "blind", choose);
  const bar = el("i", "");
  bar.style.width = `${100 * (share ?? 0)}%`;
  const won = answer === item.vote.winner;
  const meter = el("div", won ? "meter won" : "meter", bar);
  meter.setAttribute("aria-hidden", "true");
  const backed = `${percent(share)} · ${many(paths ?? 0, "path")}${won ? " · the vote" : ""}`;
  return el("li", won ? "won" : "", choose, meter, el("span", "small", backed));
}

function pathsNote(item) {
  if (!item.paths.length) return "No path is there.";
  if (item.vote !== null) return many(item.paths.length, "path");
  const hidden = item.more_paths ? `; ${item.more_paths} more after the verdict` : "";
  return `One path for each answer${hidden}.`;
}

function drawPath(path, at, of) {
  const scores = Object.entries(path.scores ?? {}).map(([name, value]) =>
    el("span", "score", el("span", "data", name), ` ${number(value)}`),
  );
  const length = known(path.n_tokens) ? el("span", "score", many(path.n_tokens, "token")) : null;
  const answer = path.answer === null ? el("em", "none", "no answer") : el("b", "data", shortened(path.answer));
  const made = el("article", "path", el("h3", "", `${at + 1} of ${of} · `, answer), el("p", "scores", scores, length));
  made.append(path.text === null ? el("p", "none", "Its text was not kept.") : written(path.text, "text"));
  made.tabIndex = 0;
  made.setAttribute("aria-label", `Path ${at + 1} of ${of}`);
  return made;
}

const shortened = (text) => (text.length > 200 ? `${text.slice(0, 199)}…` : text);

/** Go to the next path, or the one before. */
export function stepPath(by) {
  const paths = [...byId("paths").children];
  if (!paths.length) return;
  const here = paths.indexOf(document.activeElement?.closest(".path"));
  const next = here < 0 ? (by > 0 ? 0 : paths.length - 1) : Math.min(Math.max(here + by, 0), paths.length - 1);
  paths[next].focus();
  paths[next].scrollIntoView({ block: "nearest", inline: "nearest" });
}
