"""`python -m demur` is `demur`."""

from demur.cli import main

main()
