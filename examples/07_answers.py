"""Answers as models write them: extract, class, grade, and ask why."""

from demur import answers

paths = [
    "Half of the cake is left, so the answer is \\boxed{\\frac{1}{2}}.",
    "One minus 0.5 gives 0.5. The answer is 0.50.",
    "<think>maybe 1/3?</think> It is \\boxed{1/2}",
    "I would say \\boxed{50\\%}",
    "I don't know.",
]
found = [answers.extract(path) for path in paths]
for each, key in zip(found, answers.classes([each.answer for each in found]), strict=True):
    print(f"{each.method:<12} {each.answer!s:<14} {key}")

print()
print(answers.explain("9 + 2√10", "2*sqrt(10) + 9"))
print(answers.explain("50%", "0.5"))
print("Accepted:", answers.is_correct("July 4, 1776", ["1776-07-04", "Independence Day"], answers.text))
