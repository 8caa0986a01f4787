"""What questions are like, seen by their text alone: features, the ratio between two populations, and outliers."""
