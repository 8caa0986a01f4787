"""Sets made here, with gold answers, that a very small model can half do."""

from __future__ import annotations

import random

from demur.errors import DatasetError
from demur.records import Problem

_SEED = 20  # fixed: a set is the same for everyone; `load` chooses among its problems by a seed

_CAPITALS = """
Afghanistan:Kabul Albania:Tirana Algeria:Algiers Andorra:Andorra_la_Vella Angola:Luanda Argentina:Buenos_Aires
Armenia:Yerevan Australia:Canberra Austria:Vienna Azerbaijan:Baku Bahrain:Manama Bangladesh:Dhaka Barbados:Bridgetown
Belarus:Minsk Belgium:Brussels Belize:Belmopan Bhutan:Thimphu Botswana:Gaborone Brazil:Brasília Bulgaria:Sofia
Burkina_Faso:Ouagadougou Cambodia:Phnom_Penh Cameroon:Yaoundé Chad:N'Djamena Chile:Santiago China:Beijing
Colombia:Bogotá Costa_Rica:San_José Croatia:Zagreb Cuba:Havana Cyprus:Nicosia Denmark:Copenhagen Djibouti:Djibouti
Ecuador:Quito Egypt:Cairo El_Salvador:San_Salvador Eritrea:Asmara Estonia:Tallinn Ethiopia:Addis_Ababa Fiji:Suva
Finland:Helsinki Gabon:Libreville Georgia:Tbilisi Germany:Berlin Ghana:Accra Greece:Athens Guatemala:Guatemala_City
Guinea:Conakry Guyana:Georgetown Haiti:Port-au-Prince Honduras:Tegucigalpa Hungary:Budapest Iceland:Reykjavik
India:New_Delhi Indonesia:Jakarta Iran:Tehran Iraq:Baghdad Ireland:Dublin Italy:Rome Jamaica:Kingston Jordan:Amman
Kazakhstan:Astana Kenya:Nairobi Kuwait:Kuwait_City Kyrgyzstan:Bishkek Laos:Vientiane Latvia:Riga Lebanon:Beirut
Lesotho:Maseru Liberia:Monrovia Libya:Tripoli Lithuania:Vilnius Luxembourg:Luxembourg Madagascar:Antananarivo
Malawi:Lilongwe Malaysia:Kuala_Lumpur Maldives:Malé Mali:Bamako Malta:Valletta Mauritania:Nouakchott
Mauritius:Port_Louis Mexico:Mexico_City Moldova:Chișinău Mongolia:Ulaanbaatar Montenegro:Podgorica Morocco:Rabat
Mozambique:Maputo Namibia:Windhoek Nepal:Kathmandu New_Zealand:Wellington Nicaragua:Managua Niger:Niamey
Nigeria:Abuja North_Macedonia:Skopje Norway:Oslo Oman:Muscat Pakistan:Islamabad Panama:Panama_City
Papua_New_Guinea:Port_Moresby Paraguay:Asunción Peru:Lima Philippines:Manila Poland:Warsaw Portugal:Lisbon Qatar:Doha
Romania:Bucharest Russia:Moscow Rwanda:Kigali Saudi_Arabia:Riyadh Senegal:Dakar Serbia:Belgrade
Sierra_Leone:Freetown Singapore:Singapore Slovakia:Bratislava Slovenia:Ljubljana Somalia:Mogadishu South_Korea:Seoul
Spain:Madrid Sudan:Khartoum Suriname:Paramaribo Sweden:Stockholm Switzerland:Bern Syria:Damascus Taiwan:Taipei
Tajikistan:Dushanbe Thailand:Bangkok Togo:Lomé Trinidad_and_Tobago:Port_of_Spain Tunisia:Tunis Turkey:Ankara
Turkmenistan:Ashgabat Uganda:Kampala Ukraine:Kyiv United_Kingdom:London Uruguay:Montevideo Uzbekistan:Tashkent
Venezuela:Caracas Vietnam:Hanoi Yemen:Sanaa Zambia:Lusaka Zimbabwe:Harare
"""
_ALSO = """
Ukraine:Kiev Yemen:Sana'a Kazakhstan:Nur-Sultan Mongolia:Ulan_Bator Moldova:Chisinau Brazil:Brasilia Colombia:Bogota
Cameroon:Yaounde Togo:Lome Paraguay:Asuncion Maldives:Male Costa_Rica:San_Jose Switzerland:Berne
Luxembourg:Luxembourg_City
"""
_NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Finn", "Grace", "Hugo", "Ida", "Jack")
_THINGS = ("apples", "pens", "books", "coins", "cards", "stones", "eggs", "stamps")


def generate(name: str) -> list[Problem]:
    """A whole set, always the same and in the same order."""
    if name not in NAMES:
        raise DatasetError(f"there is no built-in set {name!r}; expected one of {', '.join(NAMES)}")
    return NAMES[name](random.Random(_SEED))


def addition(rng: random.Random) -> list[Problem]:
    """Every sum of two numbers up to 20, shuffled, but the two that the small model's prompt tells."""
    pairs = [(a, b) for a in range(1, 21) for b in range(1, 21) if (a, b) not in ((2, 3), (7, 6))]
    rng.shuffle(pairs)
    return [_problem(f"addition-{a}-{b}", f"What is {a} + {b}?", (str(a + b),), "math") for a, b in pairs]


def capitals(rng: random.Random) -> list[Problem]:
    """The capitals of countries; those that the small model's prompt tells are left out."""
    pairs, also = _pairs(_CAPITALS), dict(_pairs(_ALSO))
    rng.shuffle(pairs)
    problems = []
    for country, city in pairs:
        gold = (city, also[country]) if country in also else (city,)
        name, question = f"capital-{country.replace(' ', '-')}", f"What is the capital of {country}?"
        problems.append(_problem(name, question, gold, "qa"))
    return problems


def _pairs(listed: str) -> list[list[str]]:
    return [pair.replace("_", " ").split(":") for pair in listed.split()]


def word_problems(rng: random.Random) -> list[Problem]:
    """One step of addition or subtraction, told as a story."""
    problems: dict[str, Problem] = {}
    while len(problems) < 300:
        name, thing = rng.choice(_NAMES), rng.choice(_THINGS)
        a, b = rng.randint(2, 20), rng.randint(1, 12)
        if rng.random() < 0.5:
            text, gold = f"{name} has {a} {thing}. {name} buys {b} more. How many {thing} does {name} have now?", a + b
        elif b < a:
            text, gold = f"{name} has {a} {thing}. {name} gives away {b}. How many {thing} are left?", a - b
        else:
            continue
        problems.setdefault(text, _problem(f"word-problem-{len(problems)}", text, (str(gold),), "math"))
    return list(problems.values())


def _problem(name: str, question: str, gold: tuple[str, ...], task: str) -> Problem:
    return Problem(name, question, gold, extra={"task": task})


NAMES = {"addition": addition, "capitals": capitals, "word-problems": word_problems}
