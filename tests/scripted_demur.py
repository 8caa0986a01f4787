"""`demur` with a scripted model in place of the real one, for tests that start it as a process."""

from __future__ import annotations

import random
import re

from demur.backends import Completion, Scripted, weights
from demur.cli import main
from demur.pipeline.config import Config


def sometimes_right(prompt, wanted):
    """Sums that get harder with their size; right ones are surer, so that weights help."""
    asked = prompt.text or prompt.messages[-1]["content"]
    first, second = map(int, re.findall(r"What is (\d+) \+ (\d+)", asked)[-1])
    rng = random.Random(f"{first} {second} {wanted.path}")
    right = rng.random() > (first + second) / 30
    said = first + second if right else first + second + rng.choice((1, 1, 10))
    return Completion(wanted.path, f"The answer is {said}.", "stop", (-0.2 if right else -rng.random(),))


def backend(*_):
    """Under the name of the packaged model, which a policy file alone may name."""
    return Scripted(sometimes_right, model=weights.DEFAULT)


if __name__ == "__main__":
    Config.backend = backend
    main()
