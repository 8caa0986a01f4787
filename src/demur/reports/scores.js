/* Votes compared on the same questions: the best first, by the mean over the yields that all can reach. */

const baselines = Object.entries(facts.baselines);
const ranked = facts.scores.toSorted((one, other) => (other.common_auc ?? -1) - (one.common_auc ?? -1));
const best = ranked.find(({ behind_best: [difference] }) => difference === 0) ?? null;
const alike = ranked.filter((score) => score.within_noise);
const nameOf = (score) => short(score.title, 80) + (score.own ? " (this policy)" : "");

/* Accuracy that a vote reaches at about this yield: looked up on its frontier, none where it cannot answer so few. */
function accuracyAt({ answered, accuracy }, share) {
  const after = answered.findIndex((other) => other >= share - 1e-9);
  if (share <= 0 || after < 0) return null;
  if (answered[after] - share < 1e-9) return accuracy[after];
  if (after === 0) return answered[0] - share < 0.02 ? accuracy[0] : null;
  const slope = (accuracy[after] - accuracy[after - 1]) / (answered[after] - answered[after - 1]);
  return accuracy[after - 1] + slope * (share - answered[after - 1]);
}
const accuracyNow = ({ frontier }, point) => (frontier ? accuracyAt(frontier, point.answered) : null);
const hollow = (cx, cy) => draw("circle", { class: "hollow", cx, cy, r: 5 });
const square = (x, y) => draw("rect", { class: "base", x: x - 4.5, y: y - 4.5, width: 9, height: 9 });
const diamond = (x, y) => draw("path", { class: "solid", d: `M${x - 6} ${y}l6 -6l6 6l-6 6Z` });
const whisker = (from, to, y) => draw("path", { class: "whisker", d: `M${from} ${y - 4}v8m0 -4H${to}m0 -4v8` });
const spot = (cx, cy) => draw("g", "mark-alpha", draw("circle", { class: "dot", cx, cy, r: 5 }));

/* A long name in lines of so many signs, broken behind a blank or a mark where there is one. */
function linesOf(text, most) {
  const lines = [];
  let rest = text;
  while (rest.length > most) {
    const at = Math.max(...[" ", "_", "-", "/", "."].map((sign) => rest.lastIndexOf(sign, most - 1)));
    const end = at > most / 3 ? at + 1 : most;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...lines, rest];
}
const SIGN = 6.9;
const scoresChart = {
  caption() {
    const { n, left_out, draws } = facts.compared;
    const lacking = left_out ? ` ${many(left_out, "question")} without one of these scores are left out.` : "";
    const intervals = `Intervals are for 95\u00a0% confidence: same-yield means, yields and differences by ${draws} draws of the questions with replacement, the same for all votes; vote right by the exact binomial; path AUROC by the normal law, a question's paths together.`;
    const noise = "A difference whose interval includes 0 is within noise.";
    const areas = "Frontier AUC counts only the yields that a vote can reach, so compare the same-yield mean.";
    const by = facts.compared.by ? ` ${facts.compared.by}` : "";
    return n
      ? `All votes on the same ${many(n, "labelled question")}.${lacking} ${intervals} ${noise} ${areas}${by}`
      : "";
  },
  build(width) {
    const rows = [
      ...ranked.map((score) => ({ name: nameOf(score), score })),
      ...baselines.map(([name, accuracy]) => ({ name, accuracy })),
    ];
    if (!rows.length) return { svg: draw("svg", { width, height: 12, role: "img" }), key: null, move: () => {} };
    // Names stand beside their rows where all of them have room there, and above them where not.
    const longest = Math.max(...rows.map(({ name }) => name.length)) * SIGN + 16;
    const beside = longest <= width * 0.46;
    const left = beside ? longest : 8;
    const whole = ranked.flatMap((score) => [score.vote_accuracy, score.common_auc, score.common_auc_interval[0]]);
    const partial = comparable.flatMap((score) => score.frontier.accuracy);
    const low = floorOf(whole, partial, Object.values(facts.baselines));
    let height = 6;
    for (const row of rows) {
      row.lines = beside ? [row.name] : linesOf(row.name, Math.floor((width - 28) / SIGN));
      row.top = height;
      height += beside ? 26 : 22 + row.lines.length * 16;
      row.y = height - 13;
    }
    const titles = { xTitle: "Accuracy, A", xText: shareText };
    const plot = frame(width, height + 48, { x: [low, 1], ...titles, left, top: 6 });
    for (const { name, lines, top, y, score, accuracy } of rows) {
      plot.line("grid", left, y, plot.right, y);
      const kind = score ? "title" : "";
      if (beside) plot.text(name, left - 8, y + 4, "end", kind);
      else for (const [at, line] of lines.entries()) plot.text(line, left, top + 14 + at * 16, "start", kind);
      if (!score) {
        const x = plot.X(accuracy);
        plot.svg.append(square(x, y));
        if (x > plot.right - 60) plot.text(percent(accuracy), x - 10, y + 4, "end", "label");
        else plot.text(percent(accuracy), x + 10, y + 4, "start", "label");
        continue;
      }
      const { vote_accuracy, common_auc, common_auc_interval } = score;
      if (common_auc_interval.every(known)) plot.svg.append(whisker(...common_auc_interval.map(plot.X), y));
      if (known(vote_accuracy)) plot.svg.append(hollow(plot.X(vote_accuracy), y));
      if (known(common_auc)) plot.svg.append(diamond(plot.X(common_auc), y));
    }
    const scored = rows.filter(({ score }) => score);
    const spots = scored.map(({ y }) => plot.svg.appendChild(spot(0, y)));
    const key = signKey([
      [hollow(13, 6), "all questions answered"],
      [draw("g", {}, whisker(1, 25, 6), diamond(13, 6)), "mean over the yields all can reach, 95\u00a0%"],
      [spot(13, 6), "at the current yield"],
      [square(13, 6), "baseline, all questions"],
    ]);
    const move = (point) => {
      for (const [row, { score }] of scored.entries()) {
        const accuracy = accuracyNow(score, point);
        spots[row].classList.toggle("hide", accuracy === null);
        if (accuracy !== null) fill(spots[row].firstChild, { cx: plot.X(accuracy) });
      }
    };
    return { svg: plot.svg, key, move };
  },
  say(point) {
    if (!facts.scores.length && !baselines.length) return "No labelled questions, so nothing to compare.";
    if (best === null) return "These votes have no yield in common, so none is called the best.";
    const rate = `${percent(best.common_auc)} right${betweenText(best.common_auc_interval)}`;
    const more = alike.length > 4 ? ` and ${alike.length - 4} more` : "";
    const near = alike.length ? ` Within noise of it: ${alike.slice(0, 4).map(nameOf).join(", ")}${more}.` : "";
    const far = !alike.length && ranked.length > 1 ? " The others are behind it by more than noise." : "";
    const here = accuracyNow(best, point);
    const at =
      here === null ? "" : ` At ${percent(point.answered)} answered, ${percent(here)} of its answers are right.`;
    const by = ` Ranked by the labels of ${best.n} questions: to choose by them and calibrate on the same ones would`;
    const told = `${by} break the promise; demur tune chooses on others.`;
    return `Best over the yields that all can reach: ${nameOf(best)}, ${rate}.${near}${far}${at}${told}`;
  },
  table() {
    const scored = ["Scored paths", "Lowest score", "Highest score", "Questions without it"];
    const heads = ["Vote or baseline", "Accuracy", "Normaliser", ...scored];
    const rows = ranked.map((score) => {
      const { title, vote_accuracy, normaliser, paths, low, high, missing } = score;
      return [title, vote_accuracy, normaliser, paths, low, high, missing];
    });
    const plain = baselines.map(([name, accuracy]) => [name, accuracy, "", null, null, null, null]);
    return [heads, rows.concat(plain)];
  },
};

/* The table beside it */

const betweenText = ([low, high]) => (known(low) && known(high) ? ` (${range([low, high])})` : "");
const signed = (value) => (known(value) ? `${value < 0 ? "−" : "+"}${fixed(Math.abs(value * 100), 1, 100)}` : NONE);
function differenceOf(score) {
  const [difference, low, high] = score.behind_best;
  if (score === best) return ["best", ""];
  if (!known(difference)) return [NONE, ""];
  const between = known(low) ? `${signed(low)} to ${signed(high)}` : "";
  return [`${signed(difference)} points`, score.within_noise ? `within noise: ${between}` : between];
}
function setUpScores() {
  byId("scores").classList.toggle("hide", !facts.scores.length);
  const heads = ["Vote", "Same-yield mean", "Against the best", "Answered", "Vote right", "Path AUROC", "Frontier AUC"];
  const head = heads.map((name, at) => el("th", { scope: "col", class: at ? "num" : "" }, name));
  head[3].id = "scores-answered";
  byId("scores-head").append(...head);
  const cell = (label, text, small) => {
    const between = small ? el("span", "between", small) : null;
    return el("td", { class: "num", "data-label": label }, el("span", {}, text), between);
  };
  const rates = (label, value, between) => cell(label, percent(value), known(between[0]) ? range(between) : "");
  const areas = (label, value, between) => {
    return cell(label, fixed(value, 3), known(between[0]) ? `${fixed(between[0], 3)} to ${fixed(between[1], 3)}` : "");
  };
  for (const score of ranked) {
    const answered = el("td", { class: "num answered-cell", "data-label": "Answered" });
    const cells = [
      rates(heads[1], score.common_auc, score.common_auc_interval),
      cell(heads[2], ...differenceOf(score)),
      answered,
      rates(heads[4], score.vote_accuracy, score.vote_accuracy_interval),
      areas(heads[5], score.path_auroc, score.path_auroc_interval),
      areas(heads[6], score.frontier_auc, score.frontier_auc_interval),
    ];
    const row = el(
      "tr",
      { class: score === best ? "best" : "" },
      el("th", { scope: "row", class: "data" }, nameOf(score)),
    );
    row.append(...cells);
    byId("scores-rows").append(row);
    const notes = Object.entries(score.flags).map(([flag, count]) => `${flag}: ${count}`);
    notes.push(...score.warnings);
    if (score.missing) notes.push(`${many(score.missing, "question")} without it`);
    for (const note of notes) {
      const named = note.includes(score.title) ? note : `${score.title}: ${note}`;
      byId("scores-notes").append(el("li", "data", short(named, 400)));
    }
  }
  drawn.push({ read: paintYields });
}
/* Yields are known at the calibrated alphas; between them, those of the nearest are shown. */
function paintYields(point) {
  const gaps = facts.chosen.map((alpha) => Math.abs(alpha - point.alpha));
  const at = gaps.indexOf(Math.min(...gaps));
  const label = `Answered at α = ${level(facts.chosen[at])}`;
  put("scores-answered", label);
  for (const [row, line] of [...byId("scores-rows").children].entries()) {
    const [share, low, high] = ranked[row].answered[at] ?? [null, null, null];
    const between = known(low) ? [el("span", "between", range([low, high]))] : [];
    const cell = line.querySelector(".answered-cell");
    cell.dataset.label = label;
    cell.replaceChildren(el("span", {}, percent(share)), ...between);
  }
}
