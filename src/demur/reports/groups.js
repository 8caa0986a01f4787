/* A promise per group: the threshold of each, what to expect in it, and what happened to its unseen questions. */

const VERDICT_KINDS = { consistent: "right", "more than usual": "wrong", "not consistent": "wrong" };
function groupThreshold({ answers, threshold, stand_in }) {
  if (!answers) return "not answered: too few";
  return thresholdText({ feasible: true, threshold }) + (stand_in ? " (of all)" : "");
}
function groupRow(row) {
  const cells = [String(row.n), groupThreshold(row), percent(row.answered), percent(row.expected_confident_error)];
  const tags = cells.map((text) => el("td", {}, text));
  if (facts.n_test) {
    const { observed } = row;
    const wrong = observed ? `${observed.errors} of ${observed.n}, p\u00a0=\u00a0${chance(observed.p_value)}` : NONE;
    tags.push(el("td", {}, observed ? percent(observed.answered) : NONE), el("td", {}, wrong));
    tags.push(el("td", `verdict ${VERDICT_KINDS[observed?.verdict] ?? ""}`, observed ? observed.verdict : NONE));
  }
  return el("tr", {}, el("th", { class: "data", scope: "row" }, short(row.group, 80)), tags);
}
function paintGroups(point) {
  byId("groups").classList.toggle("hide", point.groups === null);
  if (point.groups === null) return;
  const heads = ["Group", "Calibration", "Threshold λ", "Answered", "Answered wrongly"];
  if (facts.n_test) heads.push("Answered, unseen", "Wrong, unseen", "Verdict");
  byId("groups-head").replaceChildren(...heads.map((text) => el("th", { scope: "col" }, text)));
  byId("groups-rows").replaceChildren(...point.groups.map(groupRow));
  const limit = point.among_answers ? "of the answers in it" : "of the questions in it";
  const each = `In each group at most ${plainPercent(point.alpha)} ${limit} may be answered wrongly`;
  const explored = `Exploring: ${each.toLowerCase()}, if this alpha were promised.`;
  put("groups-said", point.chosen ? `${each}, by itself.` : explored);
}
