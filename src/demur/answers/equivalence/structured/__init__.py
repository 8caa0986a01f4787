"""Answers that are JSON: values, and calls of tools."""
