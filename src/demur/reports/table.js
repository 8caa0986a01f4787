/* The table of questions: filtered, sorted, a page at a time; a row, or a link to it, opens its question. */

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
  { key: "lead", name: capital(facts.confidence.told), width: 11, shown: (value) => fixed(value, 3) },
  {
    key: "confidence",
    name: questions.lead ? "Share of the vote" : "Confidence",
    width: 11,
    shown: (value) => fixed(value, 3),
  },
  { key: "tie", name: "Tie key", width: 9, shown: number },
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
  addEventListener("hashchange", openLinked);
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
  const cells = COLUMNS.map((column) => fill(cellOf(column, row), { "data-label": column.name }));
  return el("tr", { class: `row ${classes}`, "data-row": row, tabindex: 0 }, cells);
}
function cellOf({ key, text, shown }, row) {
  const value = key === "decision" ? null : questions[key][row];
  if (key === "id") return el("td", "data", foldOf(row), short(value, 60));
  if (key === "decision") return el("td", "tag decision-cell");
  if (key === "right") return el("td", {}, signOf(value));
  if (key === "calibrated") return el("td", {}, value ? "used" : "unseen");
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
      line.querySelector(".decided").replaceChildren(...decisionOn(Number(line.dataset.detail)));
      continue;
    }
    const decision = decisionOf(Number(line.dataset.row));
    if (line.dataset.decision === decision) continue;
    line.dataset.decision = decision;
    line.querySelector(".decision-cell").textContent = `${decision === "answered" ? "●" : "○"}\u00a0${decision}`;
  }
  paintCount();
}
/* What is listed, where that is not every question. */
function listedNote() {
  const { listed } = facts;
  if (!listed) return "";
  const all = `${many(questions.id.length, "question")} of ${listed.of}`;
  const wrong = listed.wrong
    ? `: the ${listed.wrong} wrong votes that are surest, and others drawn at random`
    : ", drawn at random";
  return `This page lists ${all}${wrong}. All figures above are of all questions. To list more: demur report --listed N.`;
}
function paintCount() {
  const count = view.rows.length;
  const answered = view.rows.filter((row) => state.answered[row]);
  const right = questions.right && answered.filter((row) => questions.right[row]).length;
  const judged = right !== null && answered.length ? ` (${right} right, ${answered.length - right} wrong)` : "";
  const first = view.page * PAGE;
  const rows = count > PAGE ? ` Rows ${first + 1} to ${Math.min(count, first + PAGE)}.` : "";
  const decisions = `${answered.length} answered${judged}, ${count - answered.length} abstained`;
  put("listed", listedNote());
  put(
    "row-count",
    `${count} of ${many(questions.id.length, facts.listed ? "listed question" : "question")}: ${decisions} at ${atAlpha(now())}.${rows}`,
  );
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

/* A question by its address: report.html#q=ID */

function linkedId() {
  if (!location.hash.startsWith("#q=")) return null;
  try {
    return decodeURIComponent(location.hash.slice(3));
  } catch {
    return location.hash.slice(3); // cut off in the middle of a sign
  }
}
function openLinked() {
  const id = linkedId();
  if (id === null) return;
  const row = questions.id.indexOf(id);
  if (row < 0) {
    put("row-count", `No question here has the id ${short(id, 80)}.`);
    byId("questions").scrollIntoView();
    return;
  }
  for (const filter of FILTERS) byId(filter).value = "";
  filterRows();
  view.open.add(row);
  turnTo(Math.floor(view.rows.indexOf(row) / PAGE));
  const line = byId("rows").querySelector(`tr[data-row="${row}"]`);
  line.focus({ preventScroll: true });
  line.scrollIntoView({ behavior: "instant" });
}
