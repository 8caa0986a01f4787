"""A learned key among the ways to vote that `tune` compares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from demur.errors import InvalidValue
from demur.evaluation.candidates import Configuration, LabelledPools
from demur.evaluation.learned_key import LearnedKeyFit, fit_learned
from demur.evaluation.resampling import LabelledVotes
from demur.pools.voted_pools import VotedPools
from demur.voting.key import Jitter
from demur.voting.recipe import Recipe


@dataclass(frozen=True)
class LearnedKey:
    """A confidence that is fitted on the tune split, with jitter behind it; the vote itself stays as it is."""

    score: str | None = None
    """The score that weighs the vote; None for the majority vote."""

    @property
    def name(self) -> str:
        return f"learned key of {self._base.name}"

    @property
    def distance(self) -> int:
        return 5

    @property
    def _base(self) -> Configuration:
        return Configuration() if self.score is None else Configuration(self.score, "exponential:1")

    def ranked(self, pools: LabelledPools) -> LabelledVotes:
        """By what all other problems say of each; raises where that is no better than the share of the vote."""
        voted = self._base.chosen(pools)
        fit = fit_learned(voted)
        if not fit.better:
            raise InvalidValue(fit.verdict)
        fitted = voted.voting(voted.counted)
        fitted = fitted[voted.votes.has_answer[fitted]]
        key = np.stack([np.zeros(len(voted)), voted.votes.key[:, -1]], axis=1)
        key[fitted, 0] = fit.left_out
        return LabelledVotes.of(key[voted.in_order], voted.labelled[voted.in_order])

    def chosen(self, pools: LabelledPools) -> VotedPools:
        voted = self._base.chosen(pools)
        return pools.vote(self.score, _led_by(fit_learned(voted), voted.votes.recipe))


def _led_by(fit: LearnedKeyFit, recipe: Recipe) -> Recipe:
    return replace(recipe, key=(fit.key, Jitter(0)))
