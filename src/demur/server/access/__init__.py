"""Who may ask, and how much: keys, logins, budgets, requests sent again, and what browsers may do."""
