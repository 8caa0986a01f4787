"""The whole way on a scripted model: sample into a run, calibrate, ask. Put your own backend in its place."""

import tempfile
from pathlib import Path

import demur as dm
from demur.backends import Completion, Scripted


def model(prompt, wanted):
    """Adds rightly up to ten; beyond, it guesses, and sounds less sure of it."""
    a, b = (int(word.strip("?")) for word in prompt.messages[-1]["content"].split("\n")[0].split() if word[0].isdigit())
    guess = a > 10 and wanted.seed % 5 > 0
    surprise = 0.2 + 0.05 * guess + (wanted.seed % 10) / 20
    return Completion(wanted.path, f"It is \\boxed{{{a + b + guess * (1 + wanted.seed % 2)}}}", "stop", (-surprise,))


pipeline = dm.Pipeline(Scripted(model), n_paths=8)
questions = dm.datasets.load("builtin:addition")

with tempfile.TemporaryDirectory() as folder:
    run = pipeline.run(questions[:300], store=Path(folder) / "run.db")
    print(f"{run.progress.saved} paths saved")
    policy = run.calibrate(alpha=0.1)

print(policy.summary())
with pipeline.answerer(policy) as answerer:  # opened once, asked many times; `async with` and `ask_async` in async code
    for problem in questions[300:304]:
        asked = answerer.ask(problem.question)
        said = "I would rather not answer" if asked.decision.abstained else asked.decision.answer
        print(f"{problem.question}  {said}  (confidence {asked.decision.confidence:.2f})")
