/* The decision rule: a vote is answered where its key exceeds the threshold, lexicographically and strictly.

   A key is a confidence and, behind it, what ranks votes of equal confidence. JSON knows no infinities: null is +inf in a threshold, which nothing exceeds, and -inf in a key, which exceeds nothing. */

function exceeds(key, threshold) {
  for (const [place, bound] of threshold.entries()) {
    const part = key[place] ?? -Infinity;
    const limit = bound ?? Infinity;
    if (part > limit) return true;
    if (part < limit) return false;
  }
  return false; // a tie with the threshold is not above it
}

function keyOf(questions, row) {
  return questions.key[row];
}

/* What a question must exceed: where pools differ in size, the threshold of its own size, and where each group has a
   promise of its own, that of its groups. */
function thresholdOf(point, questions, row) {
  if (point.by_kind) return point.by_kind[questions.kind[row]][questions.n_paths[row]];
  return point.by_size ? point.by_size[questions.n_paths[row]] : point.threshold;
}

/* Whether a question is answered at an operating point. Where too few questions calibrated it, nothing exceeds its
   threshold. The p-value has no say: it decides alike for marginal promises, and for no others. */
function isAnswered(point, questions, row) {
  return exceeds(keyOf(questions, row), thresholdOf(point, questions, row));
}

if (typeof module !== "undefined") module.exports = { exceeds, keyOf, thresholdOf, isAnswered };
