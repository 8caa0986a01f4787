"""Mathematical answers: tidy the surface, parse it, value it, key it."""
