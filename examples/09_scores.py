"""Scores of your own and built-in ones on a run, side by side with the majority vote."""

import tempfile
from pathlib import Path

import demur as dm
from demur.backends import Completion, Scripted
from demur.scoring import OwnScore, SelfConsistency


def model(prompt, wanted):
    """Adds rightly up to ten; beyond, it guesses, and rambles when it does."""
    a, b = (int(word.strip("?")) for word in prompt.messages[-1]["content"].split("\n")[0].split() if word[0].isdigit())
    guess = a > 10 and wanted.seed % 5 > 0
    said = f"It is \\boxed{{{a + b + guess * (1 + wanted.seed % 2)}}}"
    return Completion(wanted.path, f"Let me see, {wanted.seed % 7} ... {said}" if guess else said, "stop", (-0.3,))


def brevity(pool):
    """A score of one's own: a function of a pool, one number per path."""
    return [-len(path.text) / 10 for path in pool.paths]


with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "run.db"
    pipeline = dm.Pipeline(Scripted(model), n_paths=8, score=brevity)
    run = pipeline.run(dm.datasets.load("builtin:addition")[:200], store=place)
    for scorer in (SelfConsistency(), OwnScore(lambda pool: [0.0] * len(pool.paths), "nothing")):
        print(f"{scorer.name}: {run.add_score(scorer).saved} paths scored")
    rows = dm.compare_scores(dm.read_pools(place))

for row in rows:
    print(f"{row.title:30} path AUROC {row.path_auroc:5.2f}  vote right {row.vote_accuracy:.2f}")
    for warning in row.warnings:
        print(f"  warning: {warning}")
