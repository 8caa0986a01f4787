"""Perplexity: how likely a model finds a path."""
