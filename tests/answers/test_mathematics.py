"""Mathematics: what a rule does not read it does not drop, and what is written in many ways is the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stopwatch import a_tenth, seconds

from demur.answers import mathematics
from demur.answers.equivalence.mathematics.keys import key

NEVER_THE_SAME = [
    # what stands beside a number
    ["3:00 PM", "3:00 AM", "3:00", "3", "15"], ["8:15 p.m.", "8:15 a.m.", "8:15"], ["12 am", "12 pm", "12"],
    ["5 million", "5 billion", "5 trillion", "5 thousand", "5 hundred", "5"], ["3 dozen", "3", "3 hundred"],
    ["2 pi", "2", "2 phi"], ["3 xy", "3", "3 x", "3 y"], ["3 north", "3 south", "3"], ["5 left", "5 right", "5"],
    ["5 hours late", "5 hours early", "5 hours"], ["5 more", "5 fewer", "5"], ["2 red balls", "2 blue balls", "2 balls"], ["3 gold medals", "3 silver medals", "3 medals"], ["65 child tickets", "65 adult tickets"],
    ["5 or more", "5 or less", "5 or fewer", "5"], ["at least 5", "at most 5", "5"], ["more than 5", "less than 5", "5"],
    ["not 5", "5"], ["about 5", "above 5", "below 5", "5"], ["5 (approx)", "5 (exact)"], ["5 apart", "5 together", "5"],
    ["3\\text{ north}", "3\\text{ south}", "3"], ["5 \\text{ million}", "5 \\text{ billion}", "5"], ["5 degrees lower", "5 degrees"],
    ["3 R 2", "2 R 3", "6R", "3", "32"], ["3 remainder 2", "2 remainder 3", "3"], ["1 to 2", "2 to 1", "1/2"],
    ["1 in 4", "4 in 1", "1/4", "4"], ["2 of 3", "3 of 2"], ["1:2", "1/2", "2:1"], ["5 ft 3 in", "5 ft", "3 in", "5 ft 4 in", "53"],
    ["1 hour 30 minutes", "1 hour", "30 minutes", "130"], ["2 hours and 20 minutes", "20 hours and 2 minutes", "2 and 20"],
    ["3 apples and 4 oranges", "4 apples and 3 oranges"], ["5 dollars and 6 cents", "6 dollars and 5 cents"],
    ["5k", "5"], ["$5k", "5", "$5M"], ["\\$5M", "5"], ["1st place", "2nd place"], ["3 quarters", "three quarters"],
    # inequalities
    ["1 ≤ 2x ≤ 3", "1 ≤ x ≤ 3", "1 < 2x < 3"], ["0 < x² < 4", "0 < x < 4", "0 < x³ < 4"], ["a>2, b<5", "b>2, a<5"], ["<5", ">5", "5"],
    ["x<y", "y<x", "x \\le y"], ["|x|<3", "x<3"], ["|x-10|<3", "10-x<3"], ["x<3", "x>3", "x=3", "x \\ne 3"], ["xy<3", "x<3"],
    ["x>2 and x<5", "x>2 or x<5"], ["x^2<4", "x^2>4", "x^2 \\le 4"], ["x+y<4", "x+y>4", "x-y<4", "4 < -x-y"],
    # several statements
    ["p=5,q=2;p=7,q=3", "p=5,q=3;p=7,q=2"], ["1,2;3,4", "2,1;4,3", "1,4;3,2"], ["1 and 2", "1 or 2"], ["x=1 and x=2", "x=1 or x=2"], ["Tom and Ann", "Tom or Ann"],
    ["1, 2 and 3", "1, 2 or 3"], ["1 and 2 or 3", "1 or 2 or 3"], ["1,1,2", "1,2,2", "1,2"], ["2,2", "2"], ["x=1, y=2, 3", "x=2, y=1, 3"],
    ["x=1 y=2", "x=3 y=2", "2"], ["W(x)=1orW(x)=-1", "-1"], ["\\begin{cases}x=1\\\\y=2\\end{cases}", "\\begin{cases}x=2\\\\y=1\\end{cases}"],
    ["x=1,y=2 or x=3,y=4", "x=1,y=4 or x=3,y=2"], ["\\{\\{1,2\\},3\\}", "\\{1,2,3\\}", "\\{1,\\{2,3\\}\\}"], ["1,2,3,...", "1,2,3"],
    ["1,2,3,\\ldots", "1,2,3"], ["max = 3, min = 1", "max = 1, min = 3"], ["max=3", "min=3"], ["Maximum = 3", "Minimum = 3"], ["(1,2;3,4)", "(2,1;4,3)", "(1,2,3,4)"],
    # letters and signs
    ["C++", "C#", "C", "C+"], ["B+", "B-", "B"], ["A'", "A", "A''"], ["f'(x)", "f(x)"], ["xy=6", "6"], ["\\alpha\\beta = 2", "2"],
    ["x = 2x+3", "y = 2x+3"], ["f \\circ g", "fg", "g \\circ f"], ["10^3", "103", "10"], ["-5", "5", "--5x"], ["1 23 north", "12 3 north"],
    ["\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"], ["x!=3", "x!"], ["\\sin 30", "\\sin 30^\\circ"],
    ["(-36,3,-36,411)", "(-36,3,-36411)"], ["año", "ano"], ["no", "on"], ["\\text{was}", "\\text{saw}"], ["5.0000000001", "5"],
    ["10-12", "11-13", "-2"], ["3-2", "4-3", "1"], ["2020-05-06", "2020-06-05", "2009"], ["10/12/2020", "5/6/2020"], ["0x1F", "0x2A", "0"],
    ["IV", "VI"], ["5 squared", "5", "5 cubed"], ["$5 profit", "$5 loss", "$5"], ["10% off", "10% more", "10%"], ["six boys and three girls", "three boys and six girls"],
    ["p - q", "P - Q", "q - p"], ["f(3)=10, g=2", "f(3)=2, g=10"], ["2f(3)=10", "f(3)=10"], ["-\\boxed{5}", "\\boxed{5}"], ["\\boxed{5} million", "\\boxed{5}"],
    # names that say which of several values is meant
    ["f'(x)=3x", "f(x)=3x", "f''(x)=3x"], ["f^\\prime(x)=3x", "f^{\\prime\\prime}(x)=3x", "3x"], ["y'=2", "y=2", "y''=2"], ["f'(2)=3", "f(2)=3", "f(3)=3", "3"], ["f(-1)=3", "f(1)=3"],
    ["f(x,y)=x-y", "f(y,x)=x-y"], ["(x,y)=(1,2)", "(y,x)=(1,2)"], ["(x,y,z)=(1,2,3)", "(x,z,y)=(1,2,3)"], ["A:B=1:2", "B:A=1:2"], ["V_1:V_2=3:4", "V_2:V_1=3:4"], ["x, y = 1, 2", "x, y = 2, 1", "y, x = 1, 2"],
    ["x_{min}=3", "x_{max}=3", "x=3"], ["v_{initial}=3", "v_{final}=3"], ["T_{min} = 3", "T_{max} = 3"], ["x_1=3", "x_2=3", "3"], ["a_{n+1}=2n", "a_n=2n"], ["f_x=3", "f_y=3"], ["P(A)=1/2", "P(B)=1/2", "1/2"],
    ["AB=5", "CD=5", "5"], ["profit=3", "loss=3", "3"], ["mean=3", "median=3", "mode=3"], ["total cost=3", "unit cost=3"], ["\\angle A=30", "\\angle B=30"], ["Tom=3", "Ann=3"],
    ["x_1>3", "x_2>3", "x>3"], ["x_{min} \\approx 3", "x_{max} \\approx 3"], ["x_1 \\in (0,1)", "x_2 \\in (0,1)", "(0,1)"], ["x=y=5", "x=5", "x=z=5"], ["AB=CD=5", "AB=EF=5"],
    # units of lists
    ["$3 and 4 cents", "$4 and 3 cents", "3 and 4"], ["\\$3 and 4 cents", "\\$4 and 3 cents"], ["3%, 4", "3, 4%"], ["3% or 4", "3 or 4%"], ["(3%, 4)", "(3, 4%)"], ["\\{3\\%, 4\\}", "\\{3, 4\\%\\}"],
    ["$3, 4", "3, $4"], ["€3 and £4", "£3 and €4"], ["30°, 60", "30, 60°", "60°, 30"], ["30^\\circ, 60", "60^\\circ, 30"], ["x=3%, y=4", "x=4%, y=3"], ["3 kg, 4 m", "3 m, 4 kg"], ["(3 cm, 4)", "(4 cm, 3)"],
    ["3 cm, 4", "4 cm, 3", "3, 4"], ["1 hour and 30", "1 and 30 hours"], ["3 cm; 4 km", "4 cm; 3 km"], ["AB=3 cm, CD=4 km", "AB=3 km, CD=4 cm"],
    # units that are others by their case
    ["5 mm", "5 Mm"], ["5 mg", "5 Mg"], ["5 ms", "5 Ms"], ["5 MW", "5 mW"], ["5 MHz", "5 mHz"], ["5\\text{ mm}", "5\\text{ Mm}"],
    ["0.000000000000001", "0"], ["123456789012345678", "123456789012345679"], ["0.333", "1/3"], ["12.5", "125"],
]  # fmt: skip

THE_SAME = [
    ["5.000000000000002", "5", "4.999999999999999", "5.0000000000000001"], ["0.5600000000000005", "14/25", "0.56", "0.5599999999999999"],
    ["0.30000000000000004", "3/10"], ["1234.5678000000001", "1234.5678"], ["2.314814814815 \\times 10^{-3}", "\\frac{1}{432}"],
    ["0.14285714285714285", "1/7"], ["-2.9999999999999996", "-3"], ["(5.000000000000002, 1)", "(5,1)"], ["5.000000000000002x", "5x"],
    ["1.4142135623730951", "\\sqrt2"], ["2.5 x 10^-10", "2.5e-10", "2.5 x 10^{-10}"], ["r1 + r2", "r_2 + r_1"], ["0x1F", "1F_{16}"], ["0b101", "101_2"],
    # units, scales and words
    ["10weeks", "10 weeks", "10", "10 \\text{ weeks}", "10 Weeks.", "ten", "ten weeks", "Ten"], ["9 m", "9", "9\\text{ m}", "$9$ m", "9 \\mathrm{m}", "9 m²"],
    ["500 g", "500", "500\\text{g}", "500 grams", "five hundred", "5 hundred"], ["5 million", "5000000", "5,000,000", "$5 million", "five million dollars"],
    ["3 dozen", "36", "three dozen", "3 dozen eggs", "thirty-six"], ["2.5 thousand", "2500", "2\\frac12 thousand"], ["1.2 billion", "1200000000"],
    ["twenty-five", "25", "Twenty five", "twenty-five dollars", "\\text{twenty-five}", "25.", "25th"], ["one half", "1/2", "half", "a half", "0.5"],
    ["two thirds", "2/3"], ["three hundred", "300", "three hundred people"], ["one hundred and five", "105"], ["negative five", "-5", "minus five"],
    ["12^{\\text{th}}", "12th", "12", "12^{th}", "12^\\text{th}", "12\\text{th}", "twelve"], ["2nd", "2", "2^{\\text{nd}}"], ["21st", "21"],
    ["60 miles per hour", "60 mph", "60", "60 km/h", "60 m/s"], ["4 cups of flour", "4"], ["135 kilowatt-hours", "135"], ["2 eggs per child per day", "2"], ["7 years old", "7"], ["3 eggs a day", "3"],
    ["8 square units", "8", "8 ft^2", "8 sq. ft.", "8\\text{ cm}^2"], ["20°C", "20", "20 °C", "20^\\circ\\text{C}", "20^\\circ", "20 degrees Celsius"],
    ["35 cm, 4", "{35 cm,4}"], ["3 dollars and 4 cents", "$3 and 4 cents", "\\$3 and 4 cents", "4 cents, 3 dollars"], ["1 dollar and 4 cents", "$1, 4 cents"],
    ["3%, 4%", "3\\%, 4\\%", "3 and 4 percent", "3, 4"], ["30^\\circ, 60^\\circ", "30°, 60°", "60, 30"], ["$1,234", "1234", "1,234%"], ["$1,200 million", "1200000000"], ["\\$16,\\!386.20", "16386.2"],
    ["$3, $4", "$3$, $4$", "3, 4", "€3, €4"], ["x=3", "3", "y=3", "\\theta=3", "3=x", "x \\approx 3", "answer = 3"], ["f(x)=2x+3", "2x+3", "g(x)=2x+3"], ["S_n=n^2", "n^2", "S_{n}=n^2"],
    ["(x,y)=(1,2)", "(1,2)", "(a, b) = (1,2)"], ["A:B=1:2", "1:2"], ["f^\\prime(x)=3x", "f'(x)=3x", "f^{\\prime}(x)=3x"], ["x_{min}=3", "x_{min} \\approx 3"], ["AB=5", "AB = 5"], ["x_1=3, x_2=4", "x_2=4 and x_1=3"],
    ["5 cm and 6 cm", "5, 6", "5 and 6 cm", "6, 5"], ["3 north", "3.0 north", "3 North", "3\\text{ north}"], ["$5k", "5000", "\\$5k"], ["50¢", "50 cents", "50"],
    ["3 PM", "3:00 PM", "3:00 p.m.", "3:00pm", "15:00", "03:00 \\text{ P.M.}"], ["20:34", "08:34 \\text{P.M.}"], ["9\\text{ a.m.}", "9:00 AM"],
    ["2 pi", "2\\pi", "2π", "2 pi cm"],
    # comparisons and equations
    ["x != 3", "x \\neq 3", "x ≠ 3", "3 \\ne x", "(-\\infty,3)\\cup(3,\\infty)"], ["1 ≤ 2x ≤ 3", "[1/2,3/2]", "\\frac12 \\le x \\le 1.5"],
    ["-4 < -2x < 6", "(-3,2)", "-3<x<2"], ["x<y", "y>x", "2x<2y"], ["x+y<4", "4>y+x", "2x+2y<8"], ["0 < x^2 < 4", "4 > x^2 > 0"],
    ["1,2;3,4", "(1,2),(3,4)", "3,4; 1,2"], ["p=5,q=2;p=7,q=3", "q=3,p=7;p=5,q=2"], ["x<2 or x>5", "(-\\infty,2)\\cup(5,\\infty)", "x>5 or x<2"], ["2x+3y=6", "6=3y+2x", "4x+6y=12", "\\frac{x}{3}+\\frac{y}{2}=1"], ["x = 5", "5", "5 = x"],
    ["y=2x+1", "2x+1=y", "2x+1"], ["xy=6", "6=yx", "2xy=12"], ["1 or 2", "2 or 1", "x=1 or x=2", "1, or 2"], ["1, 2 or 3", "3 or 2 or 1"],
    ["x^2+y^2=25", "25 = y^2+x^2", "x^2+y^2-25=0"],
    # words and letters
    ["\\text{odd}", "odd", "Odd"], ["\\text{red}", "red"], ["\\text{Tom}", "Tom"], ["\\text{VW}", "VW"], ["\\text{Eva}", "Eva"], ["two and three", "2, 3"], ["\\sum_{k=0}^{n} ab", "\\sum_{k=0}^{n} ba"], ["\"C\"", "C", "“C”", "'C'", "`C`", "\\text{\"C\"}"], ["\\text{A,C,F}", "A, C, F"],
    ["cafe\u0301", "café", "Café"], ["１２", "12", "१२"], ["ｘ＋１", "x+1"],
    # angles, matrices, brackets
    ["\\sin(90^\\circ - x)", "\\cos x", "\\cos(x)", "\\sin(90° - x)"], ["\\sin 30^\\circ", "1/2", "\\cos 60°"], ["\\tan 45^{\\circ}", "1"], ["\\sin^2 10^\\circ+\\cos^2 10^\\circ", "1"],
    ["\\begin{pmatrix}1\\\\2\\end{pmatrix}+\\begin{pmatrix}3\\\\4\\end{pmatrix}", "\\begin{pmatrix}4\\\\6\\end{pmatrix}", "(4,6)", "2\\begin{pmatrix}2\\\\3\\end{pmatrix}"],
    ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}\\begin{pmatrix}0&1\\\\1&0\\end{pmatrix}", "\\begin{bmatrix}2&1\\\\4&3\\end{bmatrix}", "\\left[\\begin{array}{cc}2&1\\\\4&3\\end{array}\\right]"],
    ["\\begin{pmatrix}7\\\\1\\end{pmatrix}+t\\begin{pmatrix}2\\\\3\\end{pmatrix}", "\\begin{pmatrix}7+2t\\\\1+3t\\end{pmatrix}"],
    ["\\frac{1}{2}\\begin{pmatrix}2&4\\\\6&8\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"], ["\\begin{pmatrix}1&1\\\\0&1\\end{pmatrix}^3", "\\begin{pmatrix}1&3\\\\0&1\\end{pmatrix}"],
    ["\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}", "-2"], ["\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^T", "\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}"],
    ["\\left(-36,3,-36,411\\right)", "(-36, 3, -36, 411)"], ["1,234", "1234"], ["-$10,000", "-10000"], ["1,234 and 5,678", "1234, 5678"],
    ["\\begin{cases}x=1\\\\y=2\\end{cases}", "x=1,y=2", "y=2 and x=1"], ["1 = \\zzz = x = 0", "0"],
]  # fmt: skip

STAYS_A_PRODUCT = [["9m", "9"], ["$9 m$", "9"], ["\\(9 m\\)", "9"], ["10cm", "10"], ["4t", "4"], ["3 x", "3"]]


@pytest.mark.parametrize("group", NEVER_THE_SAME, ids=lambda group: group[0])
def test_what_is_not_read_is_not_dropped(group):
    keys = {answer: mathematics.key(answer) for answer in group}
    assert len(set(keys.values())) == len(group), keys


@pytest.mark.parametrize("group", THE_SAME, ids=lambda group: group[0])
def test_one_answer_in_many_dresses(group):
    keys = {answer: mathematics.key(answer) for answer in group}
    assert len(set(keys.values())) == 1, keys


@pytest.mark.parametrize(("product", "number"), STAYS_A_PRODUCT)
def test_a_letter_behind_a_number_is_a_factor_unless_it_is_written_as_a_unit(product, number):
    assert mathematics.key(product) != mathematics.key(number)
    assert mathematics.key("$9 m$") == mathematics.key("9m")


_MATRIX = "\\begin{pmatrix}x+1&y\\\\z&\\sqrt{w}\\end{pmatrix}"
COSTLY = {
    "a power of a matrix": _MATRIX + "^{12}", "many matrices": _MATRIX * 40, "a list of them": (_MATRIX + ", ") * 45,
    "a determinant": "\\begin{vmatrix}" + "\\\\".join(["&".join(["x_1+\\sin y"] * 4)] * 4) + "\\end{vmatrix}",
    "expressions": "(x+1)^2, " * 200, "roots": "\\sqrt{2}, " * 200, "equations": "x^2/4+y=1, " * 150, "inequalities": "2x<y, " * 250,
    "numbers in words": "one hundred and " * 120, "what multiplies": "5 million " * 190, "halves": "half a " * 280, "signs": "negative " * 220,
    "units": "5 kg and " * 220, "units in text": "5 \\text{ kg}, " * 140, "letters behind numbers": "1 m, " * 390, "alternatives": "x=1 or " * 280,
    "commas": "1," * 990 + " x", "only commas": "," * 1990, "semicolons": "1,2;" * 490, "boxes": "\\boxed{" * 280, "closed boxes": "\\boxed{1}" * 200,
    "a chain": "x = " * 490 + "1", "bounds": "1 < " * 490, "sums": "\\sum_{k=1}^{n} " * 130, "angles": "\\sin 30^\\circ " * 120, "indices": "x1" * 900,
    "cases": "\\begin{cases}" + "x=1\\\\" * 380 + "\\end{cases}", "quotes": '"' * 1990, "ordinals": "1th" * 600, "degrees": "1^\\circ" * 240,
}  # fmt: skip


@pytest.mark.parametrize("answer", COSTLY.values(), ids=COSTLY)
def test_no_answer_takes_a_tenth_of_a_second(answer):
    assert seconds(key.__wrapped__, answer[:1999]) < a_tenth()


PIECES = ["1", "23", "5.000000000000002", "1,234", "x", "x1", "\\pi", "^", "_", "+", "-", "*", "/", "=", "<", "\\le", "!=", "\\ne", ",", ";", " ", "(", ")",
          "[", "]", "{", "}", " and ", " or ", " million", " dozen", "twenty", " hundred", " and a half", " m", " kg", " per hour", "weeks", " north", "th",
          " am", ":30", "°", "\\circ", "\\sin", "\\begin{pmatrix}", "\\begin{vmatrix}", "\\begin{cases}", "\\\\", "&", "\\end{pmatrix}", "\\end{vmatrix}",
          "\\end{cases}", "\\boxed{", "\\text{", '"', "'", "$", "%", "\\sum_{k=1}^{n}", "∧", "\ue000", "^T", "\\pm", "\\cup", "\\infty", "..."]  # fmt: skip


@settings(max_examples=600)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_anything_made_of_what_is_read_here_gets_one_key(answer):
    found = mathematics.key(answer)
    if any(character.isalnum() for character in answer):
        assert found is not None
    assert mathematics.key(f"  {answer}\n") == found


@settings(max_examples=300)
@given(
    st.integers(-999, 999),
    st.integers(-999, 999),
    st.sampled_from(["<", ">", "\\le", "\\ge", "=", "\\ne"]),
    st.integers(1, 9),
)
def test_a_comparison_is_the_same_from_either_side_and_times_a_number(a, b, sign, factor):
    turned = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}.get(sign, sign)
    forms = [f"x+{a}y{sign} {b}", f"{b}{turned} x+{a}y", f"{factor}x+{factor * a}y{sign} {factor * b}"]
    assert len({mathematics.key(form.replace("+-", "-")) for form in forms}) == 1


@settings(max_examples=200)
@given(st.integers(0, 999_999))
def test_numbers_in_words_are_numbers(number):
    assert mathematics.key(_in_words(number)) == f"n:{number}"


_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # fmt: skip  # noqa: SIM905
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def _in_words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            joined = " " if size == 1000 else " and "
            return f"{_in_words(number // size)} {name}" + (joined + _in_words(rest) if rest else "")
    return _TENS[number // 10 - 2] + (f"-{_ONES[number % 10]}" if number % 10 else "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("101₂", "1012"),
        ("log₂8", "log28"),
        (r"\mathbf{a} \cdot \mathbf{b}", r"\mathbf{a} \times \mathbf{b}"),
        (r"\vec{a} \cdot \vec{b}", r"\vec{a} \times \vec{b}"),
        (r"\frac{dy}{dt}", r"\frac{y}{t}"),
        (r"\frac{d}{dx} x", r"\frac{1}{x} x"),
        (r"\frac{\partial f}{\partial x}", r"\frac{f}{x}"),
        ("~p", "p"),
        ("$5-$10", "-5"),
        ("$5 – $10", "-5"),
        ("5 mill", "5"),
        ("3 decades", "3 years"),
        ("3 pairs", "3"),
    ],
)
def test_signs_that_look_like_others_are_not_taken_for_them(one, other):
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("204₅", "204_5"), (r"3 \times 4", "12"), ("2~cm", "2 cm"), ("72 clips", "72")]
)
def test_what_means_the_same_beside_them_stays_the_same(one, other):
    assert key(one) == key(other)
