"""The report: one page that says what a score is worth, what to expect at each alpha, and why."""
