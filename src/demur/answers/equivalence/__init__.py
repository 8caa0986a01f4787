"""When two written answers are the same."""
