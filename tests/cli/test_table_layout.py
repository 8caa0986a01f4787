"""Tables fit their width, break no word, and name in full what they shorten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from demur.cli.tables import _BETWEEN_WORDS, _width, laid_out

WORDS = st.text(st.sampled_from("abcdefgh-_/0123456789%±é漢"), min_size=1, max_size=40)
CELLS = st.lists(WORDS, max_size=5).map(" ".join)


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 12))
    header = [draw(st.lists(st.sampled_from(("alpha", "of", "those", "right,", "withheld")), min_size=1, max_size=4))
              for _ in range(columns)]  # fmt: skip
    rows = draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), max_size=5))
    return [" ".join(words) for words in header], rows


@given(tables(), st.integers(80, 160))
def test_every_table_fits_and_no_word_is_broken_or_lost(table, width):
    header, rows = table
    layout = laid_out(header, rows, width)
    lines = [line for block in layout.blocks for line in block]
    assert all(_width(line) <= width for line in lines)
    shown = set(" ".join(lines).split())
    short = {name: cut for cut, name in layout.legend.items()}
    for cell in (*header, *(cell for row in rows for cell in row)):
        for word in _BETWEEN_WORDS.split(cell.strip()):
            assert set(short.get(word, word).split()) <= shown, word
    assert len(set(layout.legend.values())) == len(layout.legend)


def test_titles_wrap_before_anything_else():
    layout = laid_out(["alpha", "answered wrongly, of all"], [["0.05", "12.5 %"], ["0.1", "5.0 %"]], 20)
    assert layout.blocks == [
        [
            "          answered",
            "       wrongly, of",
            "alpha          all",
            "──────────────────",
            "0.05        12.5 %",
            "0.1          5.0 %",
        ]
    ]


def test_a_figure_stays_with_its_sign_and_its_spread():
    layout = laid_out(["alpha", "of those right"], [["0.05", "91.9 % ± 1.6"]], 20)
    assert layout.blocks[0][-1].endswith("91.9 % ± 1.6")


def test_long_names_are_cut_in_the_middle_and_named_beneath():
    names = ["Skywork/Skywork-Reward-V2-Llama-3.1-8B", "Skywork/Skywork-Reward-V2-Qwen3-8B-Preview-8B"]
    rows = [[name, "1.0 %", "2.0 %"] for name in names]
    layout = laid_out(["score", "right", "wrong"], rows, 40)
    first, second = (line.split()[0] for line in layout.blocks[0][2:])
    assert first != second
    assert "…" in first
    assert layout.legend == {first: names[0], second: names[1]}
    assert max(map(len, layout.blocks[0])) <= 40


def test_names_that_would_be_cut_alike_stay_apart():
    names = [f"organisation/model-{middle * 10}-of-many-sizes-instruct" for middle in "abc"]
    layout = laid_out(["name", "n"], [[name, "1"] for name in names], 24)
    assert len(layout.legend) == 3
    assert set(layout.legend.values()) == set(names)


def test_too_many_columns_become_blocks_that_begin_alike():
    header = ["alpha", *(f"column-number-{n}" for n in range(8))]
    layout = laid_out(header, [["0.05", *"12345678"]], 80)
    assert [block[0].split()[0] for block in layout.blocks] == ["alpha", "alpha"]
    assert [len(block[0].split()) for block in layout.blocks] == [5, 5]


def test_words_are_set_to_the_left_and_figures_to_the_right():
    layout = laid_out(["probe", "works", "n"], [["chat", "yes", "4"], ["models", "no", "12"]], 80)
    assert layout.blocks[0][2:] == ["chat    yes     4", "models  no     12"]
