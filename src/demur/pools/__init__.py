"""Pools as tables: files and frames, fields, labels, splits, and pools that have been voted on."""
