"""What a strictly typed program of a user looks like; a test checks it against the built wheel."""

from __future__ import annotations

import numpy as np

import demur as dm
from demur.backends import Completion, Prompt, Scripted, Wanted
from demur.tasks import Task, register


def calibrated() -> dm.Policy:
    table = dm.simulate_pools(200, n_paths=4)
    votes: dm.Votes = dm.vote(table.answers, table.scores, weight=dm.exponential(2), tie_break=dm.mean_score())
    policy = dm.calibrate(votes, votes.answer == table.gold, guarantee=[dm.Marginal(0.1), dm.HighProbability(0.1, 0.1)])
    decision: dm.Decision = policy.decide(table.answers[0], table.scores[0], alpha=0.1, guarantee="marginal")
    confidence: float = decision.confidence
    print(confidence, policy.forecast(0.1, "marginal").answered)
    return policy


def audited(policy: dm.Policy) -> list[str]:
    voted = dm.vote_pools(dm.read_pools("pools.jsonl"), dm.FieldChoice(score="simulated"))
    evaluation: dm.Evaluation = dm.evaluate(voted, alpha=[0.05, 0.1])
    print(evaluation.points[0].confident_error.mean)
    return [point.verdict for point in dm.audit_policy(policy, voted)]


def shown(policy: dm.Policy) -> str:
    frame = dm.read_pools("pools.jsonl").to_frame()
    page: dm.Report = dm.report(frame, policy, title="Mine")
    dm.plot.frontier(policy).save("frontier.svg")
    return page.html


def say(prompt: Prompt, wanted: Wanted) -> Completion:
    return Completion(wanted.path, f"\\boxed{{{len(prompt.problem)}}}", "stop", (-0.5,))


async def asked(policy: dm.Policy) -> str | None:
    pipeline = dm.Pipeline(Scripted(say), n_paths=4)
    async with pipeline.answerer(policy) as answerer:
        found = await answerer.ask_async("What is 2 + 3?")
    answer: str | None = found.decision.answer
    return answer


def own_task() -> Task:
    return register(Task("sums", dm.answers.mathematics, template=dm.Template("{question}")))


def evidence() -> float:
    counts = dm.Evidence.of(np.array([0.5, 1.0]), np.array([False, True]))
    return dm.Frontier.of(counts).auc + dm.Interval.exact(1, 2).upper


try:
    own_task()
except dm.DemurError as error:
    print(error.message, error.remedy)
