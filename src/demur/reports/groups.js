/* A promise per group: the threshold of each, what to expect in it, and what happened to its unseen questions. */

const VERDICT_KINDS = { consistent: "right", "more than usual": "wrong", "not consistent": "wrong" };
function groupThreshold({ answers, threshold, stand_in }) {
  if (!answers) return "not answered: too few";
  return thresholdText({ feasible: true, threshold }) + (stand_in ? " (that of all)" : "");
}
function groupRow(row) {
  // The errors of a group without a threshold of its own set none, and say little of what to expect.
  const wrong = row.stand_in ? NONE : percent(row.expected_confident_error);
  const cells = [String(row.n), groupThreshold(row), percent(row.answered), wrong];
  const tags = cells.map((text) => el("td", {}, text));
  if (facts.n_test) {
    const { observed } = row;
    const errors = observed ? `${observed.errors} of ${observed.n}, p\u00a0=\u00a0${chance(observed.p_value)}` : NONE;
    tags.push(el("td", {}, observed ? percent(observed.answered) : NONE), el("td", {}, errors));
    tags.push(el("td", `verdict ${VERDICT_KINDS[observed?.verdict] ?? ""}`, observed ? observed.verdict : NONE));
  }
  return el("tr", {}, el("th", { class: "data", scope: "row" }, short(row.group, 80)), tags);
}
function paintGroups(point) {
  byId("groups").classList.toggle("hide", point.groups === null);
  if (point.groups === null) return;
  const heads = ["Group", `Calibration ${facts.unit}s`, "Threshold λ", "Answered, expected", "Wrong, expected"];
  if (facts.n_test) heads.push("Answered, unseen", "Wrong, unseen", "Verdict");
  byId("groups-head").replaceChildren(...heads.map((text) => el("th", { scope: "col" }, text)));
  byId("groups-rows").replaceChildren(...point.groups.map(groupRow));
  const limit = `${plainPercent(point.alpha)} ${point.among_answers ? "of its answers" : "of its questions"}`;
  const others = point.groups.some((row) => row.stand_in)
    ? " Groups that take the threshold of all questions have no limit of their own."
    : "";
  const each = `The limit for wrong answers is ${limit} in each group by itself.${others}`;
  put("groups-said", point.promised ? each : `Exploring, not a promise. ${each}`);
}
