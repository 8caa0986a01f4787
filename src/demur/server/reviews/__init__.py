"""What people are to look at, what they say of it, and what they found as files."""
