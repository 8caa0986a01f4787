"""Files that other programs write of sampled answers, read as pools: inspect_ai, lm-evaluation-harness, uqlm.

What such a program says of right and wrong stays a label: it is kept in the field `labels` of a path or problem, which
no scorer is shown, and counts only where somebody names it.
"""
