/* Labels by a judge: how many, how far people confirmed them, and some of them one by one. */

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
