"""Where the two wings meet: from a question to a decision."""
