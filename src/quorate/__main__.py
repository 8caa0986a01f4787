"""`python -m quorate` is `quorate`."""

from quorate.cli import main

main()
