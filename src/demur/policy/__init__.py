"""The calibrated artifact: decides, explains itself, and refuses votes made another way."""
