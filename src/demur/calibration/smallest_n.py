"""The smallest number of votes at which something begins to hold, such as a rank that is large enough."""

from __future__ import annotations

from collections.abc import Callable


def smallest_n(holds: Callable[[int], bool], near: int) -> int:
    """The smallest n from 1 on at which something holds that holds for every larger n too, looked for around a guess.

    Where the guess is right it looks twice, and else about as often as twice the logarithm of how far off it is.
    """
    step = 1
    if holds(near):
        without, found = near - 1, near
        while without > 0 and holds(without):
            step *= 2
            without, found = max(0, without - step), without
    else:
        without, found = near, near + 1
        while not holds(found):
            step *= 2
            without, found = found, found + step
    while found - without > 1:
        middle = (without + found) // 2
        without, found = (without, middle) if holds(middle) else (middle, found)
    return found
