/* Labels used: how many votes have one and who gave it; then what a judge said of answers, some of it one by one. */

function usedCounts(point) {
  const counts = { [`Calibration ${facts.unit}s`]: facts.n };
  const { checked } = facts.labels;
  if (facts.labelled < facts.n) {
    counts.Labelled = facts.labelled;
    counts["Without a label, counted as wrong"] = facts.n - facts.labelled;
    counts[`Of these answered at ${atAlpha(point)}`] = point.unlabelled_above;
  }
  if (checked) {
    const { votes, drawn, unchecked, false_right, false_right_interval } = checked;
    const right = checked.right - checked.right_unchecked;
    const rate = right ? `, ${percent(false_right / right)}` : "";
    counts["Labelled by a judge"] = votes;
    counts["Drawn for people to check"] = drawn;
    if (unchecked) counts["Without a word by people yet, counted as wrong"] = unchecked;
    counts["Judge’s false “right”"] = `${false_right} of ${right}${rate} (95\u00a0%: ${range(false_right_interval)})`;
    counts["Judge’s false “wrong”"] = `${checked.false_wrong} of ${checked.wrong - checked.wrong_unchecked}`;
  }
  return counts;
}
function usedSentence() {
  const { checked } = facts.labels;
  const partly = facts.labelled < facts.n;
  const whole = "Votes without a label count as wrong, so that the promise holds whatever made labelling stop.";
  if (!checked) return whole;
  const by = checked.alone
    ? "Only the votes that people were to check calibrate, by what people said"
    : "The judge’s labels calibrate, and errors that people found it to miss are added";
  return `${by}. The promise needs them to be drawn at random.${partly ? ` ${whole}` : ""}`;
}
function paintUsed(point) {
  const told = facts.labelled < facts.n || facts.labels.checked !== null;
  byId("used").classList.toggle("hide", !told);
  if (!told) return;
  put("used-said", usedSentence());
  const rows = Object.entries(usedCounts(point)).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, String(value))),
  );
  byId("used-counts").replaceChildren(...rows);
}

const saying = (said) => (said === null ? NONE : said ? "yes" : "no");
function judgedSentence({ judge, agree, disagree, neither, without, overruled }) {
  const counts = `${agree} answers agree with gold, ${disagree} do not, ${neither} neither`;
  const lacking = without ? ` ${many(without, "answer")} without a verdict count as wrong.` : "";
  return `${judge} said of what the rules do not decide: ${counts}; people overruled ${overruled}.${lacking}`;
}
function checkedSentence({ checked, confirmed, interval }) {
  if (!checked) return "Nobody has checked a random part of these verdicts, so wrong means wrong by this judge.";
  const share = `${percent(confirmed / checked)} (95\u00a0%: ${range(interval)})`;
  return `People confirmed ${confirmed} of ${checked} verdicts drawn at random: ${share}.`;
}
function setUpLabels() {
  const { judged } = facts.labels;
  byId("labels").classList.toggle("hide", judged === null);
  if (judged === null) return;
  put("labels-said", judgedSentence(judged));
  put("labels-checked", checkedSentence(judged));
  put("labels-count", `${judged.shown.length} of ${many(judged.of, "verdict")}, those that people spoke on first.`);
  for (const { id, question, answer, accepted, judge, person, right } of judged.shown) {
    const texts = [id, question, answer, accepted].map((text) => el("td", "data", short(text, 200)));
    const words = [saying(judge), saying(person), right ? "right" : "wrong"].map((word) => el("td", {}, word));
    byId("labels-rows").append(el("tr", {}, texts, words));
  }
}
