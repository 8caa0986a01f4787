"""Work on many machines: a Ray cluster, and blocks of work that its workers take up."""
