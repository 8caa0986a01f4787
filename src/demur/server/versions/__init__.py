"""Which version of a policy answers, what decides beside it, and how long things are kept."""
