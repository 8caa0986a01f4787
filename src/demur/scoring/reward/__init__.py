"""Reward: the scalar of a reward model."""
