"""How good it is: repeated splits, audits, scores compared."""
