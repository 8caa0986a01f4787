/* The table of questions: filtered, sorted, a page at a time; a row opens to its question's vote and paths. */

const PAGE = 50;
const PRINTED = 40;
const FILTERS = ["filter-text", "filter-decision", "filter-right", "filter-part", "filter-group"];
const view = { rows: null, sort: null, down: false, page: 0, open: new Set() };
const collator = new Intl.Collator("en", { numeric: true });
const groups = [...new Set(questions.group)].sort((one, other) => collator.compare(one ?? "", other ?? ""));
const hasGroups = groups.some((group) => group !== null);
const decisionOf = (row) => (state.answered[row] ? "answered" : "abstained");

/* Columns: `text` is of any length and sorted as words; `shown` is how a number is written. */
const COLUMNS = [
  { key: "id", name: "Id", width: 14, text: true },
  { key: "question", name: "Question", width: 30, text: true },
  { key: "answer", name: "Answer", width: 14, text: true },
  { key: "confidence", name: "Confidence", width: 11, shown: (value) => fixed(value, 3) },
  { key: "secondary", name: "Tie key", width: 9, shown: number },
  { key: "p_value", name: "p-value", width: 9, shown: chance },
  { key: "decision", name: "Decision", width: 11 },
  { key: "right", name: "Vote", width: 9 },
  { key: "calibrated", name: "Part", width: 10 },
  { key: "group", name: "Group", width: 10, text: true },
].filter(({ key }) => (key === "group" ? hasGroups : key === "decision" || questions[key] !== null));

function setUpTable() {
  for (const { key, name, width, shown } of COLUMNS) {
    const button = el("button", { type: "button" }, name);
    const head = { scope: "col", "aria-sort": "none", "data-key": key, class: shown ? "num" : "" };
    button.addEventListener("click", () => sortBy(key));
    byId("widths").append(el("col", { style: `width: ${width}%` }));
    byId("heads").append(el("th", head, button));
  }
  for (const [index, group] of groups.slice(0, 500).entries()) {
    byId("filter-group").append(el("option", { value: index }, group === null ? "none" : short(group, 60)));
  }
  byId("filter-group").parentElement.classList.toggle("hide", !hasGroups);
  byId("filter-right").parentElement.classList.toggle("hide", !questions.right);
  for (const id of FILTERS) byId(id).addEventListener("input", filterRows);
  byId("reset").addEventListener("click", () => {
    for (const id of FILTERS) byId(id).value = "";
    filterRows();
  });
  byId("page-first").addEventListener("click", () => turnTo(0));
  byId("page-back").addEventListener("click", () => turnTo(view.page - 1));
  byId("page-next").addEventListener("click", () => turnTo(view.page + 1));
  byId("page-last").addEventListener("click", () => turnTo(lastPage()));
  byId("rows").addEventListener("click", ({ target }) => {
    const line = target.closest("tr.row");
    if (line && !getSelection().toString()) toggle(line);
  });
  byId("rows").addEventListener("keydown", walk);
  let page = 0;
  addEventListener("beforeprint", () => {
    page = view.page;
    turnTo(0);
  });
  addEventListener("afterprint", () => turnTo(page));
}

/* Which rows, in which order */

let haystack = null;
function matches() {
  haystack ??= zip(questions.id, questions.question, questions.answer).map((texts) => texts.join("\n").toLowerCase());
  const [text, decision, right, part, group] = FILTERS.map((id) => byId(id).value);
  const needle = text.trim().toLowerCase();
  const wanted = (row) =>
    haystack[row].includes(needle) &&
    (!decision || decisionOf(row) === decision) &&
    (!right || String(questions.right[row]) === right) &&
    (!part || String(questions.calibrated[row]) === part) &&
    (!group || questions.group[row] === groups[group]);
  return [...questions.id.keys()].filter(wanted);
}
const ranks = {}; // columns of text are put in order once, and sorted by rank from then on
function ranksOf(key) {
  const texts = questions[key].map((text) => short(text ?? "", 200));
  const ordered = [...new Set(texts)].sort(collator.compare);
  const places = new Map(ordered.map((text, place) => [text, place]));
  return texts.map((text) => places.get(text));
}
function filterRows() {
  view.rows = matches();
  if (view.sort) {
    const { key, text } = COLUMNS.find((column) => column.key === view.sort);
    if (text) ranks[key] ??= ranksOf(key);
    const values = ranks[key] ?? (key === "decision" ? state.answered : questions[key]);
    const compare = (one, other) => (values[one] ?? -Infinity) - (values[other] ?? -Infinity);
    view.rows.sort((one, other) => (view.down ? compare(other, one) : compare(one, other)) || one - other);
  }
  turnTo(0);
}
function sortBy(key) {
  view.down = view.sort === key && !view.down;
  view.sort = key;
  for (const head of byId("heads").children) {
    const order = view.down ? "descending" : "ascending";
    head.setAttribute("aria-sort", head.dataset.key === key ? order : "none");
  }
  filterRows();
}

/* Painting: rows when they change, their decisions whenever alpha does. */

function paintTable() {
  const decisive = byId("filter-decision").value || view.sort === "decision";
  if (view.rows === null || decisive) filterRows();
  else paintDecisions();
}
const lastPage = () => Math.max(0, Math.ceil(view.rows.length / PAGE) - 1);
function turnTo(page) {
  view.page = Math.min(Math.max(0, page), lastPage());
  const lines = view.rows.slice(view.page * PAGE, (view.page + 1) * PAGE).flatMap((row, place) => {
    const beyond = place >= PRINTED ? "beyond" : "";
    return view.open.has(row) ? [lineOf(row, `open ${beyond}`), detailOf(row, beyond)] : [lineOf(row, beyond)];
  });
  byId("rows").replaceChildren(...lines);
  put("page-now", `Page ${view.page + 1} of ${lastPage() + 1}`);
  for (const id of ["page-first", "page-back"]) byId(id).disabled = view.page === 0;
  for (const id of ["page-next", "page-last"]) byId(id).disabled = view.page === lastPage();
  paintDecisions();
}
function lineOf(row, classes) {
  const cells = COLUMNS.map((column) => cellOf(column, row));
  return el("tr", { class: `row ${classes}`, "data-row": row, tabindex: 0 }, cells);
}
function cellOf({ key, text, shown }, row) {
  const value = key === "decision" ? null : questions[key][row];
  if (key === "id") return el("td", "data", foldOf(row), short(value, 60));
  if (key === "decision") return el("td", "tag decision-cell");
  if (key === "right") return el("td", {}, signOf(value));
  if (key === "calibrated") return el("td", {}, value ? "calibration" : "unseen");
  if (key === "answer" && value === null) return el("td", {}, "no answer");
  return text ? el("td", "data", short(value ?? "", 120)) : el("td", "num", shown(value));
}
function foldOf(row) {
  const names = { "aria-expanded": String(view.open.has(row)), "aria-label": "Paths of this question" };
  return el("button", { class: "fold", type: "button", tabindex: -1, ...names }, "›");
}
const signOf = (right) => (right ? el("span", "right", "✓ right") : el("span", "wrong", "✕ wrong"));
function paintDecisions() {
  for (const line of byId("rows").children) {
    if (line.matches(".detail")) {
      line.querySelector(".decision").textContent = decisionSentence(Number(line.dataset.detail));
      continue;
    }
    const decision = decisionOf(Number(line.dataset.row));
    if (line.dataset.decision === decision) continue;
    line.dataset.decision = decision;
    line.querySelector(".decision-cell").textContent = `${decision === "answered" ? "●" : "○"} ${decision}`;
  }
  paintCount();
}
function paintCount() {
  const count = view.rows.length;
  const answered = view.rows.filter((row) => state.answered[row]);
  const right = questions.right && answered.filter((row) => questions.right[row]).length;
  const judged = right !== null && answered.length ? ` (${right} right, ${answered.length - right} wrong)` : "";
  const first = view.page * PAGE;
  const rows = count > PAGE ? ` Rows ${first + 1} to ${Math.min(count, first + PAGE)}.` : "";
  const decisions = `${answered.length} answered${judged}, ${count - answered.length} abstained`;
  put("row-count", `${count} of ${many(questions.id.length, "question")}: ${decisions} at ${atAlpha(now())}.${rows}`);
}

/* Opening a row, and walking the rows by keyboard */

function toggle(line) {
  const row = Number(line.dataset.row);
  const open = !view.open.has(row);
  if (open) {
    view.open.add(row);
    line.after(detailOf(row, line.matches(".beyond") ? "beyond" : ""));
  } else {
    view.open.delete(row);
    line.nextElementSibling.remove();
  }
  line.classList.toggle("open", open);
  line.querySelector(".fold").setAttribute("aria-expanded", String(open));
}
function walk(event) {
  const line = event.target;
  if (!line.matches("tr.row") || !["Enter", " ", "ArrowDown", "ArrowUp"].includes(event.key)) return;
  event.preventDefault();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const lines = [...byId("rows").querySelectorAll("tr.row")];
  if (step) lines[lines.indexOf(line) + step]?.focus();
  else toggle(line);
}

/* One question: why it is answered or not, its text, its vote, its paths */

function decisionSentence(row) {
  const point = now();
  const [first, second] = thresholdOf(point, questions, row);
  const confidence = questions.confidence[row];
  const verb = state.answered[row] ? "exceeds" : "does not exceed";
  let why = `confidence ${fixed(confidence, 4)} ${verb} the threshold ${fixed(first, 4)}`;
  if (!point.feasible) {
    why = needs(point);
  } else if (questions.answer[row] === null) {
    why = "no path has an answer";
  } else if (point.rare_sizes.includes(questions.n_paths[row])) {
    why = `it has ${questions.n_paths[row]} paths, and too few calibration questions have as many`;
  } else if (confidence === first && known(second)) {
    const key = `the tie key ${number(questions.secondary[row])} ${verb} ${number(second)}`;
    why = `confidence ${fixed(confidence, 4)} ties with the threshold, and ${key}`;
  }
  const scope = point.guarantee === "marginal" ? "" : " (it decides only for marginal promises)";
  const part = questions.calibrated[row] ? " This question helped to set the threshold." : "";
  const head = `${capital(decisionOf(row))} at ${atAlpha(point)}`;
  return `${head}: ${why}. p-value ${chance(questions.p_value[row])}${scope}.${part}`;
}
function detailOf(row, beyond) {
  const paths = facts.paths[row];
  const heading = el("h3", {}, "Question ", el("span", "data", questions.id[row]));
  const inner = el("div", "inner", el("p", "decision", decisionSentence(row)));
  inner.append(el("div", {}, heading, el("p", "question data", questions.question[row] ?? "No text.")));
  if (paths.answer.length) {
    const blocks = paths.answer.map((_, index) => pathBlock(paths, index));
    inner.append(el("div", {}, el("h3", {}, "Vote"), voteOf(row, paths)));
    inner.append(el("div", {}, el("h3", {}, many(blocks.length, "path")), blocks));
  }
  return el("tr", { class: `detail ${beyond}`, "data-detail": row }, el("td", { colspan: COLUMNS.length }, inner));
}
function voteOf(row, paths) {
  const tally = new Map();
  for (const [index, answer] of paths.answer.entries()) {
    const counted = tally.get(answer) ?? { share: 0, count: 0, right: paths.right?.[index] };
    tally.set(answer, { ...counted, share: counted.share + paths.share[index], count: counted.count + 1 });
  }
  const sorted = [...tally].sort(([, one], [, other]) => other.share - one.share);
  const bars = sorted.map(([answer, { share, count, right }]) => {
    const rounded = Math.round(share * 1000) / 1000; // shares are stored rounded, so their sums are a little off
    const kind = right === undefined ? "" : right ? "is-right" : "is-wrong";
    const bar = el("i", { class: kind, style: `width: ${Math.min(100, rounded * 100)}%` });
    const sign = right === undefined ? [] : [", ", signOf(right)];
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
  const sign = paths.right && signOf(paths.right[index]);
  const name = el("span", "none", `Path ${index + 1}`);
  const head = el("div", "path-head", name, answerOf(paths.answer[index], "tag"), score, share, sign);
  const block = el("div", "path", head, foundOf(paths.found?.[index] ?? null));
  if (text === null) return block;
  const shown = el("div", "text data", text);
  block.append(shown);
  if (text.split("\n").length > 12 || text.length > 1100) block.append(moreButton(shown));
  return block;
}
/* The words that an answer was taken from, among those around them. */
function foundOf(found) {
  if (found === null) return null;
  const [method, before, words, behind] = found;
  return el("p", "found data", el("span", "none", `${method}: `), before, el("mark", {}, words), behind);
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
