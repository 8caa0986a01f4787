/* One question, opened: why it is answered or not, what was asked and accepted, its vote, its paths. */

function decisionSentence(row) {
  const point = now();
  const threshold = thresholdOf(point, questions, row);
  const first = threshold[0];
  const key = keyOf(questions, row);
  const confidence = key[0];
  const tie = threshold.findIndex((bound, place) => place && key[place] !== bound);
  const verb = state.answered[row] ? "exceeds" : "does not exceed";
  const share = facts.confidence.is_share ? "" : ` (share of the vote ${fixed(questions.confidence[row], 4)})`;
  const told = `${facts.confidence.told} ${fixed(confidence, 4)}${share}`;
  let why = `${told} ${verb} the threshold ${fixed(first, 4)}`;
  if (!point.feasible) {
    why = needs(point);
  } else if (point.nowhere) {
    why = point.nowhere.replace(/\.$/, "");
  } else if (questions.answer[row] === null) {
    why = "no path has an answer";
  } else if (facts.confidence.unlike && confidence === 0 && questions.confidence[row] > 0) {
    why = facts.confidence.unlike;
  } else if (point.by_kind && point.refusals[questions.kind[row]] !== null) {
    why = point.refusals[questions.kind[row]];
  } else if (point.rare_sizes.includes(questions.n_paths[row])) {
    why = `it has ${questions.n_paths[row]} paths, and too few calibration questions have as many`;
  } else if (first === 0 && confidence > 0) {
    why = `${told}, and at this alpha whatever has an answer is answered`;
  } else if (confidence === first && tie > 0 && known(threshold[tie])) {
    const name = facts.key[tie].replaceAll("_", " ");
    const compared = `its ${name} ${number(key[tie])} ${verb} ${number(threshold[tie])}`;
    why = `${told} ties with the threshold, and ${compared}`;
  }
  const decides = ["marginal", "grouped_marginal"].includes(point.guarantee) && point.choices === 1;
  const scope = decides ? "" : " (it decides only for marginal promises)";
  const part = questions.calibrated[row] ? " The policy was made with this question." : "";
  const head = `${capital(decisionOf(row))} at ${atAlpha(point)}`;
  return `${head}: ${why}. p-value ${chance(questions.p_value[row])}${scope}.${part}`;
}
/* The answers that are offered where the policy abstains; nothing where it has no answer sets at this alpha. */
function offeredOf(row) {
  const { alpha, guarantee } = now();
  const offered = facts.answer_sets.find((point) => point.alpha === alpha && point.guarantee === guarantee);
  if (!offered || state.answered[row]) return [];
  const set = offered.sets[row];
  const held = set ? [...set.answers.map((answer) => answerOf(answer, "tag")), ...(set.other ? ["OTHER"] : [])] : [];
  const listed = held.flatMap((one, at) => [at ? " · " : "", one]);
  const none = set ? "none of the paths' answers" : "none is promised";
  return [el("p", "offered", el("b", {}, "Answer set: "), ...(listed.length ? listed : [none]), `. ${offered.note}`)];
}
const decisionOn = (row) => [el("p", "decision", decisionSentence(row)), ...offeredOf(row)];
function detailOf(row, beyond) {
  const paths = facts.paths[row];
  const inner = el("div", "inner", el("div", "decided", decisionOn(row)), askedOf(row));
  if (paths.class.length) {
    const blocks = paths.class.map((_, index) => pathBlock(paths, index));
    const without = paths.class.filter((place) => place === null).length;
    const lacking = without
      ? `${without} of ${many(blocks.length, "path")} without an answer`
      : "every path has an answer";
    inner.append(el("div", {}, el("h3", {}, `Vote: ${lacking}`), voteOf(row, paths)));
    inner.append(el("div", {}, el("h3", {}, many(blocks.length, "path")), blocks));
  }
  return el("tr", { class: `detail ${beyond}`, "data-detail": row }, el("td", { colspan: COLUMNS.length }, inner));
}

/* What was asked and what is accepted */

function askedOf(row) {
  const { id, question, gold, options, asked } = questions;
  const heading = el("h3", "asked-head", el("span", {}, "Question ", el("span", "data", id[row])), linkTo(row));
  const part = el("div", {}, heading, el("p", "question data", question[row] ?? "No text."));
  if (options[row]) {
    const items = options[row].map(([letter, text, right]) => {
      const sign = right ? el("span", "right", " ✓ accepted") : null;
      return el("li", {}, el("b", {}, `${letter}. `), el("span", "data", text), sign);
    });
    part.append(el("ul", "options", items));
  }
  for (const [name, texts] of asked[row] ?? []) {
    const shown = texts.map((text) => el("p", "passage data", text));
    part.append(el("details", "asked", el("summary", {}, `${capital(name)} (${texts.length})`), shown));
  }
  const accepted = gold[row].length
    ? gold[row].flatMap((text, at) => [at ? " or " : "", el("b", "data", text)])
    : [questions.right ? "none in the file; paths are labelled as they stand" : "not known"];
  part.append(el("p", "gold", "Accepted answer: ", ...accepted));
  return part;
}
/* A link that opens this question, and its address on the clipboard where the browser lets it be written. */
const linkOf = (row) => `#q=${encodeURIComponent(questions.id[row])}`;
function linkTo(row) {
  const link = el("a", { href: linkOf(row) }, "Link to this question");
  const copy = el("button", { type: "button", class: "more" }, "Copy link");
  copy.addEventListener("click", () => {
    const address = new URL(linkOf(row), location.href).href;
    const tell = (words) => copy.replaceChildren(words);
    const failed = () => {
      location.hash = linkOf(row);
      copy.textContent = "See the address bar";
    };
    if (navigator.clipboard) navigator.clipboard.writeText(address).then(() => tell("Copied"), failed);
    else failed();
  });
  return el("span", "links", link, copy);
}

/* The vote, and each path in its own words */

function voteOf(row, paths) {
  const tally = new Map();
  for (const [index, place] of paths.class.entries()) {
    const counted = tally.get(place) ?? { share: 0, count: 0, right: paths.right?.[index] };
    tally.set(place, { ...counted, share: counted.share + paths.share[index], count: counted.count + 1 });
  }
  const sorted = [...tally].sort(([, one], [, other]) => other.share - one.share);
  const bars = sorted.map(([place, { share, count, right }]) => {
    const answer = place === null ? null : paths.classes[place];
    const rounded = Math.round(share * 1000) / 1000; // shares are stored rounded, so their sums are a little off
    const kind = right === undefined || place === null ? "" : right ? "is-right" : "is-wrong";
    const bar = el("i", { class: kind, style: `width: ${Math.min(100, rounded * 100)}%` });
    const sign = right === undefined || place === null ? [] : [", ", signOf(right)];
    const name = answerOf(answer, answer === questions.answer[row] ? "tag" : "");
    return [name, el("div", "meter", bar), el("span", {}, `${percent(rounded)}, ${many(count, "path")}`, ...sign)];
  });
  return el("div", "vote", ...bars);
}
function answerOf(answer, kind) {
  return answer === null ? el("span", "none", "no answer") : el("span", `data ${kind}`, short(answer, 300));
}
function pathBlock(paths, index) {
  const text = paths.text?.[index] ?? null;
  const share = el("span", {}, `${percent(paths.share[index])} of the weight`);
  const score = paths.score && el("span", {}, `score ${number(paths.score[index])}`);
  const sign = paths.right && paths.class[index] !== null ? signOf(paths.right[index]) : null;
  const name = el("span", "none", `Path ${index + 1}`);
  const own = paths.answer[index];
  const spelled = own === null ? null : paths.classes[paths.class[index]];
  const same = own === spelled ? null : el("span", "none", "counts as ", answerOf(spelled, ""));
  const head = el("div", "path-head", name, answerOf(own, "tag"), same, score, share, sign);
  const block = el("div", "path", head, readOf(paths.read[index], own));
  if (text === null) return block;
  const shown = el("div", "text data", text);
  block.append(shown);
  if (text.split("\n").length > 12 || text.length > 1100) block.append(moreButton(shown));
  return block;
}
/* How an answer was read: the rule, and the words that it was taken from among those around them. */
function readOf(read, own) {
  if (read === null) return own === null ? null : el("p", "found none", "The answer was given with the path.");
  const [method, before, words, behind] = read;
  const rule = own === null ? `No answer was read (${method})` : `Read by the rule “${method}”`;
  if (words === undefined) return el("p", "found data none", `${rule}.`);
  return el("p", "found data", el("span", "none", `${rule}: `), before, el("mark", {}, words), behind);
}
function moreButton(shown) {
  const button = el("button", { type: "button", class: "more", "aria-expanded": "false" }, "Show all");
  shown.classList.add("cut");
  button.addEventListener("click", () => {
    const cut = shown.classList.toggle("cut");
    button.textContent = cut ? "Show all" : "Show less";
    button.setAttribute("aria-expanded", String(!cut));
  });
  return button;
}
