"""Draw the figures of docs/plots.md by the code that stands above each; `make picture` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pages import blocks

HERE = Path(__file__).parent
FIGURES = HERE / "assets" / "plots"


def main() -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    for block in blocks(HERE / "plots.md"):
        exec(block.text, names)
        if block.title is not None:
            names["chart"].save(FIGURES / f"{block.title}.svg")
            print(f"wrote {block.title}.svg")


if __name__ == "__main__":
    main()
