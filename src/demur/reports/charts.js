/* The charts of one policy. Each builds its picture for a width, moves its marks to an operating point, says in words what they
   show, and has its data as a table: [heads, rows]. */

const heightOf = (width) => Math.round(Math.min(320, Math.max(250, width * 0.78)));
const PAPER = { whole: 680, half: 328 };
const BINS = 20;
const DASHES = ["7 3", "2 3", "9 3 2 3", "none", "12 4"];
const HUES = 5;
const MOST_CURVES = HUES * DASHES.length - 1;
const FEW_CURVES = 6;
const comparable = facts.scores.filter((score) => score.frontier?.answered.length);

const sum = (values) => values.reduce((total, value) => total + value, 0);
const zip = (...lists) => lists[0].map((_, index) => lists.map((list) => list?.[index]));
const lambdaText = (point) =>
  point.feasible && !point.nowhere ? `λ = ${fixed(point.threshold[0], 3)}` : "abstains always";
const whereFeasible = (say) => (point) =>
  point.feasible ? point.nowhere || say(point, point.observed) : `${needs(point)}.`;
function allVotes(plot, accuracy = facts.vote_accuracy) {
  return { name: "all votes, p_v", colour: "none", dash: "1 3", dots: straight(plot, accuracy) };
}

/* No two curves alike: every hue with one dash each, then every hue with another. */
const styleOf = (index) => ({
  colour: `s${index % HUES}`,
  dash: DASHES[(index + Math.floor(index / HUES)) % DASHES.length],
});
/* The votes beside the policy's own, the best first and as many as can be told apart. */
const onCompared = facts.frontier.on === "compared";
const rivals = comparable
  .filter(({ own }) => !(own && onCompared))
  .sort((one, other) => (other.common_auc ?? -1) - (one.common_auc ?? -1))
  .slice(0, MOST_CURVES);
function frontierCaption() {
  const { n, left_out } = facts.compared;
  const lacking = left_out ? ` (${left_out} that lack a score are left out)` : "";
  const same = `Each curve is one way to vote on the same ${many(n, "labelled question")}${lacking}`;
  const own = onCompared
    ? `${same}; the thick one is this policy's.`
    : `The thick curve is this policy's, on the ${many(facts.n, facts.unit)} that calibrated it.${rivals.length ? ` ${same}.` : ""}`;
  const unseen = facts.n_test ? " The ring is what happened on unseen questions." : "";
  return `${own} The dot is what to expect, from calibration and corrected for the errors that set the threshold.${unseen}`;
}
const frontierChart = {
  caption: frontierCaption,
  build(width) {
    const { answered, accuracy } = facts.frontier;
    const others = rivals.flatMap((score) => score.frontier.accuracy);
    const expected = points.map((point) => point.accuracy);
    const whole = onCompared ? accuracy.at(-1) : facts.vote_accuracy;
    const low = floorOf(accuracy, others, expected, whole);
    const xTitle = "Yield: share of questions answered, y";
    const yTitle = "Accuracy of answers, A";
    const height = width > 700 ? 400 : heightOf(width);
    const plot = frame(width, height, { x: [0, 1], y: [low, 1], xTitle, yTitle, xText: shareText, yText: shareText });
    const series = rivals.map(({ title, frontier }, index) => ({
      name: short(title, 80),
      ...styleOf(index),
      dots: trace(plot, frontier.answered, frontier.accuracy),
    }));
    const policy = { name: "this policy", colour: "right", wide: true, dots: trace(plot, answered, accuracy) };
    const shown = [policy, ...series, allVotes(plot, whole)];
    for (const one of shown.toReversed()) curve(plot, one);
    const key = shown.length > FEW_CURVES ? keyTo(shown) : labelCurves(plot, shown);
    const mark = markOn(plot, 2);
    const move = (point) => {
      const observed = point.observed && [point.observed.answered, point.observed.accuracy];
      mark(point.answered, `α = ${level(point.alpha)}`, point.accuracy, observed);
    };
    return { svg: plot.svg, key, move };
  },
  say: whereFeasible((point, observed) => {
    const unseen = observed ? `; unseen: ${percent(observed.answered)} and ${percent(observed.accuracy)}` : "";
    return `${percent(point.answered)} answered, ${percent(point.accuracy)} of them right${unseen}.`;
  }),
  table() {
    const curves = [{ title: "this policy", frontier: facts.frontier }, ...rivals];
    const rows = curves.flatMap(({ title, frontier }) => {
      const pairs = zip(frontier.answered, frontier.accuracy);
      const step = Math.ceil(pairs.length / 20);
      return pairs.filter((_, at) => at % step === 0 || at === pairs.length - 1).map((pair) => [title, ...pair]);
    });
    return [["Vote", "Yield", "Accuracy"], rows];
  },
};

/* How many of all questions may be answered wrongly at a point. */
const limitAt = ({ alpha, among_answers, answered }) => (among_answers ? alpha * answered : alpha);
const controlChart = {
  caption() {
    const most = now().among_answers ? "α times the share answered, for the limit is one of the answers" : "α";
    return `Wrong answers are expected to stay under the line y = ${most}, whatever alpha is chosen.`;
  },
  build(width) {
    const alphas = points.map((point) => point.alpha);
    const x = [alphas[0], alphas.at(-1)];
    const yTitle = "Share of questions";
    const plot = frame(width, heightOf(width), { x, y: [0, 1], xTitle: "Error level, α", yTitle, yText: shareText });
    const none = alphas.map(() => 0);
    const all = alphas.map(() => 1);
    const wrong = points.map((point) => point.expected_confident_error);
    const answered = points.map((point) => point.answered);
    const areas = [
      { name: "abstained", low: answered, high: all, fill: "f-none" },
      { name: "answered right", low: wrong, high: answered, fill: "f-right" },
      { name: "answered wrongly", low: none, high: wrong, fill: "f-wrong" },
    ];
    const limit = now().among_answers ? "limit: α of the answers" : "limit α";
    const series = [{ name: limit, colour: "ink", dots: trace(plot, alphas, points.map(limitAt)) }];
    if (facts.n_test) {
      const errors = points.map((point) => point.observed.confident_error);
      series.push({ name: "wrong, unseen questions", colour: "wrong", dash: "5 3", dots: trace(plot, alphas, errors) });
    }
    const taken = [];
    for (const { low, high, fill } of areas) area(plot, alphas, low, high, fill);
    const thin = areas.filter((part) => !labelArea(plot, alphas, part, taken));
    for (const one of series) curve(plot, one);
    const homeless = labelCurves(plot, series, taken) ? series : [];
    const key = thin.length || homeless.length ? keyTo([...thin, ...homeless]) : null;
    const mark = markOn(plot, 2);
    const move = (point) => {
      const { alpha, expected_confident_error, observed } = point;
      mark(alpha, `α = ${level(alpha)}`, expected_confident_error, observed?.confident_error);
    };
    return { svg: plot.svg, key, move };
  },
  say: whereFeasible((point, observed) => {
    const law = observed && !point.groups ? `, ${usual(observed)}` : "";
    const unseen = observed ? `; unseen: ${percent(observed.confident_error)}${law}` : "";
    const wrong = percent(point.expected_confident_error);
    const limit = `limit ${plainPercent(point.alpha)}${point.among_answers ? " of the answers" : ""}`;
    return `${wrong} answered wrongly, ${limit}${unseen}.`;
  }),
  table() {
    const heads = ["Alpha", "Answered", "Answered wrongly", "Unseen: answered", "Unseen: wrongly", "p-value"];
    const rows = points.map(({ alpha, answered, expected_confident_error, observed }) => {
      const unseen = [observed?.answered, observed?.confident_error, observed?.p_value];
      return [alpha, answered, expected_confident_error, ...unseen];
    });
    return [heads, rows];
  },
};

const accuracyChart = {
  build(width) {
    const { threshold, accuracy, lower, upper, observed } = facts.curves;
    const y = [floorOf(accuracy, lower, observed ?? [], facts.vote_accuracy), 1];
    const titles = { xTitle: `Threshold on ${facts.confidence.told}, λ`, yTitle: "Accuracy of answers, A(λ)" };
    const plot = frame(width, heightOf(width), { x: [0, 1], y, ...titles, yText: shareText });
    const twice = (values) => values.flatMap((value) => [value, value]);
    area(plot, [...twice(threshold).slice(1), threshold.at(-1)], twice(lower), twice(upper), "band");
    const stairs = (values) => trace(plot, threshold, values, true);
    const series = [{ name: "predicted", colour: "right", wide: true, dots: stairs(accuracy) }, allVotes(plot)];
    const unseen = { name: "observed, unseen questions", colour: "wrong", dash: "6 3" };
    if (observed) series.splice(1, 0, { ...unseen, dots: stairs(observed) });
    for (const one of series) curve(plot, one);
    const key = labelCurves(plot, series);
    const mark = markOn(plot, 2);
    const move = (point) => {
      const values = point.answered ? [point.accuracy, point.observed?.accuracy] : [];
      mark(point.threshold[0], lambdaText(point), ...values);
    };
    return { svg: plot.svg, key, move };
  },
  say: whereFeasible((point, observed) => {
    const above = `above λ = ${thresholdText(point)}`;
    if (!point.answered) return `Nothing is answered ${above}.`;
    const unseen = observed ? `; observed ${percent(observed.accuracy)}` : "";
    return `${above}, ${percent(point.accuracy)} predicted right, band ${range(point.band)}${unseen}.`;
  }),
  table() {
    const { threshold, answered, accuracy, lower, upper, observed } = facts.curves;
    const heads = ["Threshold", "Answered", "Accuracy", "Lower", "Upper", "Observed"];
    return [heads, zip(threshold, answered, accuracy, lower, upper, observed)];
  },
};

function drawHazards(width, height, place) {
  const { edges, gap } = facts.hazards;
  const gaps = gap.filter(known);
  const y = [Math.min(0, ...gaps), Math.max(0.5, ...gaps)];
  const titles = { xTitle: `Threshold on ${facts.confidence.told}, λ`, yTitle: "Hazard gap: wrong minus right" };
  const plot = frame(width, height, { ...place, y, ...titles, yText: number });
  const zero = plot.Y(0);
  for (const [bin, value] of gap.entries()) {
    const left = plot.X(edges[bin]) + 1.5;
    const right = plot.X(edges[bin + 1]) - 1.5;
    const end = plot.Y(value ?? 0);
    const size = [Math.max(1, right - left), Math.max(0.5, Math.abs(end - zero))];
    if (value === null) plot.text(NONE, (left + right) / 2, zero - 3);
    else plot.rect(value < 0 ? "f-wrong" : "f-right", left, Math.min(zero, end), ...size);
  }
  return plot;
}
const separabilityChart = {
  build(width) {
    const { threshold, survival_right, survival_wrong, gap } = facts.curves;
    const height = heightOf(width) + 80;
    const split = Math.round(height * 0.65);
    const lowest = Math.min(0, ...gap.filter(known));
    const y = [lowest < -0.02 ? Math.max(-1, Math.floor(lowest * 5) / 5) : 0, 1];
    const plot = frame(width, height, { x: [0, 1], y, yTitle: "Share above λ: survival S, gap Δ", bottom: split });
    const stairs = (values) => trace(plot, threshold, values, true);
    const series = [
      { name: "right votes", colour: "right", wide: true, dots: stairs(survival_right) },
      { name: "wrong votes", colour: "wrong", wide: true, dash: "7 3", dots: stairs(survival_wrong) },
      { name: "gap Δ", colour: "ink", dash: "2 2", dots: stairs(gap) },
    ];
    for (const one of series) curve(plot, one);
    const key = labelCurves(plot, series);
    const bars = drawHazards(width, height, { svg: plot.svg, x: [0, 1], top: split + 36 });
    const mark = markOn(plot);
    const under = draw("line", { class: "rule", y1: bars.top, y2: bars.bottom });
    plot.add("g", "mark-alpha", under);
    const move = (point) => {
      const at = plot.X(point.threshold[0]);
      mark(point.threshold[0], lambdaText(point));
      fill(under, { x1: at, x2: at });
    };
    return { svg: plot.svg, key, move };
  },
  say: whereFeasible((point) => {
    if (facts.labelled < facts.n) return "Only some of the calibration votes are labelled, so this is not known.";
    const rights = sum(facts.evidence.right);
    const wrongs = sum(facts.evidence.wrong);
    const right = rights ? point.right_above / rights : null;
    const wrong = wrongs ? point.wrong_above / wrongs : null;
    const gap = known(right) && known(wrong) ? right - wrong : null;
    const shares = `${percent(right)} of the right votes and ${percent(wrong)} of the wrong ones`;
    return `Above the threshold ${thresholdText(point)} lie ${shares}; gap Δ = ${fixed(gap, 3)}.`;
  }),
  table() {
    const { threshold, survival_right, survival_wrong, gap } = facts.curves;
    return [["Threshold", "Right above", "Wrong above", "Gap"], zip(threshold, survival_right, survival_wrong, gap)];
  },
};

function binned(counts) {
  const right = new Array(BINS).fill(0);
  const wrong = new Array(BINS).fill(0);
  for (const [index, confidence] of counts.confidence.entries()) {
    // Bins are (a, b], as the rule is strict: what lies on a threshold is not above it.
    const bin = Math.min(BINS - 1, Math.max(0, Math.ceil(confidence * BINS - 1e-9) - 1));
    right[bin] += counts.right[index];
    wrong[bin] += counts.wrong[index];
  }
  return { right, wrong };
}
const evidenceChart = {
  build(width) {
    const { right, wrong } = binned(facts.evidence);
    const most = Math.max(1, ...right);
    const worst = Math.max(0, ...wrong);
    const y = [-(worst + (most + worst) * 0.1), most * 1.08];
    const symbol = facts.confidence.is_share ? ", ν" : "";
    const titles = { xTitle: `${capital(facts.confidence.told)} of the vote${symbol}`, yTitle: "Number of votes" };
    const plot = frame(width, heightOf(width), { x: [0, 1], y, ...titles, yText: (value) => String(Math.abs(value)) });
    const zero = plot.Y(0);
    const roomy = (plot.right - plot.left) / BINS > 17;
    for (let bin = 0; bin < BINS; bin++) {
      const x = plot.X(bin / BINS) + 1;
      const size = plot.X((bin + 1) / BINS) - x - 1;
      const up = Math.max(2, zero - plot.Y(right[bin]));
      const down = Math.max(2, plot.Y(-wrong[bin]) - zero);
      if (right[bin]) plot.rect("f-right", x, zero - up, size, up);
      if (wrong[bin]) plot.rect("f-wrong", x, zero, size, down);
      if (roomy && right[bin]) plot.text(right[bin], x + size / 2, zero - up - 4);
      if (roomy && wrong[bin]) plot.text(wrong[bin], x + size / 2, zero + (down > 18 ? down - 5 : down + 12));
    }
    plot.line("axis", plot.left, zero, plot.right, zero);
    const veil = draw("rect", { class: "veil", x: plot.left, y: plot.top, height: plot.bottom - plot.top });
    plot.add("g", "mark-alpha", veil);
    plot.label("↑ right votes", plot.left + 6, plot.top + 16, "right", "start");
    plot.label("↓ wrong votes", plot.left + 6, plot.bottom - 6, "wrong", "start");
    const mark = markOn(plot);
    const move = (point) => {
      mark(point.threshold[0], lambdaText(point));
      fill(veil, { width: plot.X(point.threshold[0]) - plot.left });
    };
    return { svg: plot.svg, key: null, move };
  },
  say: whereFeasible((point) => {
    const votes = `${many(point.right_above, "right vote")} and ${point.wrong_above} wrong, of ${facts.n}`;
    return `Above the threshold ${thresholdText(point)}: ${votes}.`;
  }),
  table() {
    const edges = Array.from({ length: BINS + 1 }, (_, bin) => bin / BINS);
    const { right, wrong } = binned(facts.evidence);
    const unseen = facts.test ? binned(facts.test) : {};
    const heads = ["Confidence above", "up to", "Right", "Wrong", "Unseen: right", "Unseen: wrong"];
    return [heads, zip(edges.slice(0, -1), edges.slice(1), right, wrong, unseen.right, unseen.wrong)];
  },
};

/* Figures: each stands in the page with its title and caption, and is drawn anew where its width changes. */

const drawn = [];
let onPaper = false;
function setUpCharts() {
  setUpScores();
  setUpChart("chart-frontier", frontierChart);
  setUpChart("chart-control", controlChart);
  setUpChart("chart-accuracy", accuracyChart);
  setUpChart("chart-separability", separabilityChart);
  setUpChart("chart-evidence", evidenceChart);
  setUpChart("chart-scores", scoresChart);
  // A page is laid out for paper without a word to what observes it, so that pictures are drawn for it beforehand.
  addEventListener("beforeprint", () => layOut(true));
  addEventListener("afterprint", () => layOut(false));
}
function layOut(forPaper) {
  onPaper = forPaper;
  for (const { fit } of drawn) fit?.();
}
/* Anew at the same width, for another guarantee. */
function redraw() {
  for (const { paint } of drawn) paint?.();
}
function setUpChart(id, { build, say, table, caption }) {
  const [title, reading, plot, words, details] = byId(id).querySelectorAll("h3, .reading, .plot, figcaption, details");
  let width = 0;
  let picture = null;
  const read = (point) => {
    const told = say(point);
    picture.move(point);
    reading.textContent = capital(told);
    picture.svg.setAttribute("aria-label", `${title.textContent}. At ${atAlpha(point)}: ${told}`);
  };
  const fit = () => {
    const paper = byId(id).matches(".whole") ? PAPER.whole : PAPER.half;
    const room = onPaper ? paper : plot.clientWidth;
    const wanted = Math.round(Math.min(Math.max(room, 260), 1160));
    if (Math.abs(wanted - width) < 3) return;
    width = wanted;
    paint();
  };
  const paint = () => {
    if (caption) words.textContent = caption();
    picture = build(width);
    plot.replaceChildren(...[picture.svg, picture.key].filter((part) => part !== null));
    read(now());
  };
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(dataTable(...table()));
  });
  new ResizeObserver(fit).observe(plot);
  fit();
  drawn.push({ read, fit, paint });
}
function dataTable(heads, rows) {
  const step = Math.max(1, Math.ceil(rows.length / 60));
  const kept = rows.filter((_, index) => index % step === 0 || index === rows.length - 1);
  const textOf = (cell) => (typeof cell === "string" ? short(cell, 80) : number(cell));
  const head = heads.map((name) => el("th", { scope: "col" }, name));
  const body = kept.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", "data", textOf(cell)))));
  const table = el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  const note = step > 1 ? el("p", "small", `Every ${step} of ${rows.length} rows.`) : null;
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Data of the chart" }, table, note);
}
