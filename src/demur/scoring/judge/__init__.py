"""Judge: log p(Y) of a one-letter verdict on a path."""
