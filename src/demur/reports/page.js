/* The page: its facts, the operating point in use, and what stands around the charts and the table. */

const facts = JSON.parse(byId("data").textContent);
const { questions, families } = facts;
const pointsOf = (family) => facts.points.filter((point) => point.family === family);
let points = pointsOf(0); // of the guarantee that is shown
const state = { family: 0, index: points.findIndex((point) => point.chosen), answered: [] };
const now = () => points[state.index];
const family = () => families[state.family];

/* Guarantee and alpha. All guarantees have points at the same alphas. */

function setUpAlpha() {
  const slider = byId("alpha");
  const select = byId("guarantee");
  slider.max = points.length - 1;
  slider.addEventListener("input", () => setAlpha(Number(slider.value)));
  for (const [at, { told }] of families.entries()) select.append(el("option", { value: at }, capital(told)));
  byId("promised").classList.toggle("hide", families.length === 1);
  select.addEventListener("input", () => setFamily(Number(select.value)));
  setUpChosen();
}
/* Ticks and buttons of the alphas that the guarantee was calibrated for. */
function setUpChosen() {
  for (const old of document.querySelectorAll("#track .tick, #chosen button")) old.remove();
  put("chosen-said", family().every_alpha ? "Any alpha holds; asked for" : "Calibrated for");
  for (const [index, point] of points.entries()) {
    if (!point.chosen) continue;
    const place = index / Math.max(1, points.length - 1);
    // The slider's thumb is 16 px wide.
    byId("track").append(el("span", { class: "tick", style: `left: calc(8px + ${place} * (100% - 16px))` }));
    const button = el("button", { type: "button", "data-index": index }, level(point.alpha));
    button.addEventListener("click", () => setAlpha(index));
    byId("chosen").append(button);
  }
}
/* Another guarantee, at the same alpha where it was calibrated for that. */
function setFamily(at) {
  state.family = at;
  points = pointsOf(at);
  questions.p_value = family().p_value ?? firstValues;
  if (!now().chosen) state.index = points.findIndex((point) => point.chosen);
  setUpChosen();
  redraw();
  setAlpha(state.index);
  if (view.sort === "p_value") filterRows();
}
const firstValues = questions.p_value;
function setAlpha(index) {
  state.index = index;
  const point = now();
  const slider = byId("alpha");
  const words = point.feasible ? `${percent(point.answered)} answered` : needs(point);
  state.answered = questions.id.map((_, row) => isAnswered(point, questions, row));
  slider.value = index;
  slider.setAttribute("aria-valuetext", `alpha ${level(point.alpha)}, ${words}`);
  put("alpha-value", level(point.alpha));
  for (const button of byId("chosen").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.index) === index));
  }
  paintStatus(point);
  paintHeader(point);
  paintWarnings(point);
  paintGroups(point);
  paintUsed(point);
  for (const chart of drawn) chart.read(point);
  paintTable();
}
function paintStatus(point) {
  const sizes = `*${percent(point.answered)}* answered, *${percent(point.accuracy)}* of them right`;
  const errors = `*${percent(point.expected_confident_error)}* answered wrongly`;
  const words = point.feasible
    ? `${sizes}, ${errors}, threshold *${thresholdText(point)}*.${point.promised ? "" : " Exploring, not a promise."}`
    : `*${capital(needs(point))}*. It has ${facts.n}.`;
  const parts = words.split("*").map((part, place) => (place % 2 ? el("b", {}, part) : part));
  byId("status").replaceChildren(...parts);
}

/* Header */

function promiseSentence(point) {
  if (!point.feasible) return `At ${atAlpha(point)}, the policy ${needs(point)}. It has ${facts.n}.`;
  if (point.nowhere) return `At ${atAlpha(point)}, ${point.nowhere}`;
  if (!point.promised) {
    const rates = `about ${percent(point.answered)} of questions would be answered, and ${percent(point.expected_confident_error)} of all wrongly`;
    return `Exploring ${atAlpha(point)}: ${rates}. Nothing is promised here, for this alpha was not calibrated.`;
  }
  const each = point.groups ? "in each group by itself, " : "";
  const aNew = facts.unit === "cluster" ? "one question of each new cluster" : "new questions";
  const used = point.groups ? `the ${facts.unit}s of that group` : `the ${facts.n} ${facts.unit}s used`;
  const sets = `for all but a share ${point.delta} of calibration sets like ${used}`;
  const chosen = point.choices > 1 ? `, whichever of ${point.choices} ways to vote was chosen by the same labels` : "";
  if (point.among_answers) {
    const share = `of the answers given to ${aNew} at most ${plainPercent(point.alpha)} are wrong in the long run${chosen}`;
    return `At ${atAlpha(point)}, ${each}${sets}, ${share}. ${facts.labels.wrong}`.trim();
  }
  const promised = point.delta
    ? `${sets}, the rate of wrong answers on ${aNew}`
    : `on ${aNew} like ${point.groups ? "those of the group" : `the ${facts.n}`} it was calibrated on, the chance that ${facts.unit === "cluster" ? "it" : "a question"} is answered wrongly`;
  return `At ${atAlpha(point)}, ${each}${promised} is at most ${plainPercent(point.alpha)}${chosen}. ${facts.labels.wrong}`.trim();
}
function smallPrint(point) {
  const alphas = family().chosen.map(level).join(", ");
  const every = point.groups ? "all questions of a group together" : "all questions together";
  const whole = point.among_answers ? "the answers given, taken together" : every;
  const about = `This is about ${whole}, not about any one answer.`;
  const full = point.feasible ? ` In full: ${point.promise}` : "";
  const price = point.price ? ` ${point.price}` : "";
  if (family().every_alpha)
    return `${about} Every alpha is promised together: take any of them, after looking at what each brings.${price}${full}`;
  if (point.chosen)
    return `${about} It holds for an alpha chosen beforehand: the policy was calibrated for ${alphas}.${price}${full}`;
  return `${about} A promise holds for an alpha that is chosen before looking: the policy was calibrated for ${alphas}.`;
}
function accuracySentence(point) {
  if (!point.answered) return "Nothing is answered.";
  const least = `At least ${percent(point.accuracy_at_least)} with 95\u00a0% confidence`;
  return `of the answers, expected. ${least}; band ${range(point.band)}.`;
}
function thresholdSentence(point) {
  if (!point.feasible) return `${needs(point)}.`;
  if (point.nowhere) return capital(point.nowhere);
  return `Answers if the ${facts.confidence.told} is greater${tiesText()}. ${originOf(point)}`;
}
function originOf(point) {
  if (point.groups) return "Each group has its own; this is the smallest.";
  if (point.among_answers) return "Set by the errors above every threshold at once.";
  if (point.judged) return "Set by the errors that the judge saw, and by those that people found it to miss.";
  const wrong = facts.labelled < facts.n ? "wrong or without a label" : "wrong";
  return point.threshold[0] > 0
    ? `Set by rank ${point.k} among the votes that are ${wrong}, of ${facts.n} ${facts.unit}s.`
    : `Of the votes with a confidence above 0, fewer than ${point.k} are ${wrong}, so all of these are answered.`;
}
const VERDICTS = {
  consistent: ["right", "✓ Consistent with the promise."],
  "more than usual": ["wrong", "! More than usual."],
  "not consistent": ["wrong", "✕ Not consistent with the promise."],
};
function verdict({ answered, observed }) {
  if (answered === 0 && observed.errors === 0) return ["", "Nothing to check where nothing is answered."];
  return VERDICTS[observed.verdict] ?? ["", "No verdict: this alpha was not chosen beforehand."];
}
function paintHeader(point) {
  put("promise", promiseSentence(point));
  byId("promise").classList.toggle("exploring", !point.promised);
  put("print", smallPrint(point));
  put("big-answered", percent(point.answered));
  put("big-accuracy", percent(point.accuracy));
  put("big-error", percent(point.expected_confident_error));
  put("big-withheld", percent(point.false_abstention));
  put("big-threshold", thresholdText(point));
  put("sub-accuracy", accuracySentence(point));
  const limit = `Limit: ${plainPercent(point.alpha)}${point.among_answers ? " of the answers given" : ""}${point.groups ? " in each group" : ""}`;
  put("sub-error", `of all questions, expected. ${limit}.`);
  put("sub-threshold", thresholdSentence(point));
  if (point.observed) paintObserved(point, point.observed);
}
function paintObserved(point, observed) {
  const [kind, words] = verdict(point);
  const unseen = `on ${facts.n_test} unseen`;
  const law = `; ${usual(observed)}, p\u00a0=\u00a0${chance(observed.p_value)}`;
  const wrong = `${percent(observed.confident_error)} (${observed.errors}) ${unseen}${point.groups ? "" : law}. `;
  put("seen-answered", `${percent(observed.answered)} ${unseen}`);
  put("seen-accuracy", `${percent(observed.accuracy)} ${unseen}`);
  put("seen-withheld", `${percent(observed.false_abstention)} ${unseen}`);
  const judged = point.groups ? "Each group is judged by itself, below." : el("span", `verdict ${kind}`, words);
  byId("seen-error").replaceChildren(wrong, judged);
}
function paintWarnings(point) {
  const stuck = facts.unanimous.wrong;
  const warnings = [...facts.warnings];
  if (!point.feasible) {
    warnings.unshift(`${capital(atAlpha(point))} ${needs(point)}.`);
  } else if (stuck > point.alpha && facts.key.length === 1 && !point.among_answers && !point.groups) {
    const share = `${percent(stuck)} of all votes are unanimous and wrong`;
    warnings.unshift(`No threshold can answer: ${share}. Break ties by mean score.`);
  } else if (point.nowhere) {
    warnings.unshift(`At ${atAlpha(point)} ${point.nowhere}`);
  } else if (point.answered === 0) {
    const none = `no vote exceeds the threshold ${thresholdText(point)}`;
    warnings.unshift(`At ${atAlpha(point)} nothing is answered: ${none}.`);
  }
  byId("warnings").replaceChildren(...warnings.map((text) => el("li", "data", text)));
}

/* Footer, theme, start */

function setUpFooter() {
  const { model, task, temperature, score, normaliser, weight, tie_break, relation } = facts.run;
  const [low, high] = facts.n_paths;
  const [without, paths] = facts.without_answer;
  const settings = {
    Model: model,
    Task: task,
    Temperature: temperature,
    Score: score,
    Normaliser: normaliser,
    Weight: weight,
    Guarantee: families.map(({ told }) => capital(told)).join("; "),
    Confidence: facts.confidence.made,
    "Ties broken by": tie_break,
    "Answers compared by": relation,
    "Right is": facts.labels.told,
    "Paths per question": low === high ? low : `${low} to ${high}`,
    "Paths without an answer": `${without} of ${paths} (${percent(paths ? without / paths : null)})`,
    [`Calibration ${facts.unit}s`]: facts.labelled < facts.n ? `${facts.n}, ${facts.labelled} labelled` : facts.n,
    [`Unseen labelled ${facts.unit}s`]: facts.n_test,
  };
  for (const [name, value] of Object.entries(settings)) {
    const shown = value === null ? "not stated" : short(value, 300);
    byId("run").append(el("div", {}, el("dt", {}, name), el("dd", "data", shown)));
  }
  const inside = "All data are inside this file; nothing is loaded from the network, and nothing is sent.";
  put("colophon", `Made with demur ${facts.demur}. ${inside}`);
}
function setUpTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const { dataset } = document.documentElement;
  const isDark = () => (dataset.theme ? dataset.theme === "dark" : dark.matches);
  const paint = () => put("theme", isDark() ? "Light theme" : "Dark theme");
  byId("theme").addEventListener("click", () => {
    dataset.theme = isDark() ? "light" : "dark";
    paint();
  });
  dark.addEventListener("change", paint);
  paint();
}
// All of the page's files are one script, and the page starts when it has been read to the end.
document.addEventListener("DOMContentLoaded", () => {
  document.title = clean(facts.title).trim() || document.title;
  put("title", document.title);
  for (const note of document.querySelectorAll(".seen")) note.classList.toggle("hide", facts.n_test === 0);
  setUpTheme();
  setUpAlpha();
  setUpFooter();
  setUpLabels();
  setUpTable();
  setUpCharts();
  setAlpha(state.index);
  openLinked();
});
