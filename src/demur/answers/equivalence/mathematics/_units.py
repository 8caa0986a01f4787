"""Units: the written list of words that may stand behind a number without changing it.

A word that is not in the list stays in the key of its answer, so `3 north` is neither `3` nor `3 south`. Words that say
how many (million, dozen) are no units: they multiply. So are none that compare or place: more, fewer, late, left, red.
"""

from __future__ import annotations

import re
from itertools import pairwise

_MEASURES = """
    m cm mm km dm nm in ins inch inches ft foot feet yd yds yard yards mi mile miles meter metre kilometer kilometre
    centimeter centimetre millimeter millimetre micrometer nanometer fathom furlong league parsec block
    g gm gms kg kgs mg mcg lb lbs oz gram gramme kilogram kilogramme kilo milligram pound ounce ton tonne stone carat
    l ml kl cc liter litre milliliter millilitre kiloliter gal gals gallon pt pts pint qt qts quart cup tbsp tablespoon
    tsp teaspoon bushel barrel
    s sec secs second min mins minute h hr hrs hour day night week wk wks weekday weekend fortnight month year yr yrs
    semester period ms millisecond microsecond
    acre ha hectare unit
    mph kph kmh kmph fps rpm wpm bpm mpg knot
    percent deg degree rad radian celsius fahrenheit kelvin
    n j w v kj kw kwh mw gw hz khz mhz ghz psi atm kpa kcal newton joule watt kilowatt megawatt volt amp ampere ohm
    hertz pascal calorie kilocalorie horsepower mol mole decibel
    bit byte kb mb gb tb kilobyte megabyte gigabyte terabyte megabit gigabit kilobit mbps gbps pixel
"""
_MONEY = """
    dollar cent penny pennies usd buck euro eur gbp pence quid rupee rs inr yen yuan rmb peso peseta franc krone kronor
    krona ruble won cad aud pfennig nickel dime ruppee
"""
_COUNTED = """
    way time piece item object thing part unit total integer digit number value solution root term factor
    divisor multiple prime element subset permutation combination arrangement outcome point line side edge
    vertex vertices face angle diagonal triangle rectangle circle cube polygon pattern row column group set
    couple team class section type kind sort color colour level step turn round lap trip visit ride game match
    goal vote mark grade question problem exercise test lesson word letter sentence page chapter book story
    stories essay poem novel article song episode movie film video photo picture painting drawing poster card
    stamp sticker email message call text post file app album person people man men woman women child children
    kid boy girl adult student pupil teacher worker employee member player friend guest customer passenger
    visitor tourist patient doctor nurse soldier voter citizen family families parent brother sister sibling son
    daughter grandchild grandchildren baby babies classmate neighbor neighbour roommate camper rider runner
    racer singer musician actor builder painter farmer chef clerk judge guard client attendee animal dog puppy
    puppies cat kitten bird chick chicken hen rooster duck duckling goose geese turkey cow calf calves bull
    horse pony ponies sheep lamb goat pig piglet rabbit bunny bunnies mouse mice rat hamster gerbil fish
    goldfish guppy guppies shark whale dolphin turtle tortoise frog toad tadpole snake lizard spider ant bee
    butterfly butterflies bug insect beetle fly flies worm snail deer wolf wolves fox bear lion tiger zebra
    giraffe elephant monkey kangaroo koala penguin owl eagle pigeon parrot swan crab lobster oyster jellyfish
    starfish squirrel raccoon beaver camel dromedary dromedaries dragon dinosaur pet leg ear eye tooth teeth arm
    finger toe hand wing tail feather hair apple orange banana pear peach plum grape cherry cherries berry
    berries strawberry strawberries blueberry blueberries raspberry raspberries lemon lime melon watermelon
    mango mangoes pineapple coconut kiwi avocado fruit vegetable carrot potato potatoes tomato tomatoes onion
    pepper cucumber radish turnip corn bean pea pumpkin mushroom nut peanut almond walnut acorn seed grain egg
    yolk loaf loaves slice bun bagel donut doughnut croissant cookie biscuit cracker brownie cupcake muffin cake
    pie pastry pastries pancake waffle tart candy candies sweet chocolate lollipop jellybean gumdrop gumball
    marshmallow pretzel chip sandwich burger hamburger hotdog sausage meatball pizza taco burrito dumpling
    noodle omelet steak salad soup meal snack dessert drink soda juice smoothie milkshake latte coffee tea milk
    water flour sugar butter cheese rice bread honey salt oil cream ice protein fat fiber food feed meat beef
    pork wine beer paint gas gasoline fuel dirt soil sand gravel concrete wood paper fabric material yarn string
    rope ribbon wire clay glue ink soap gold silver copper iron ore flower rose tulip daisy daisies lily lilies
    sunflower carnation marigold petunia orchid petal bouquet bulb plant tree bush branch leaf leaves vine
    seedling sapling log twig stick box bag sack basket crate carton case container package packet pack jar can
    tin bottle jug pitcher bucket tub tube tray plate bowl dish glass mug pan pot spoon fork knife knives napkin
    straw batch serving portion scoop bite bar stack pile bundle bunch roll sheet ream bale load pallet shelf
    shelves drawer toy doll ball balloon marble block bead button coin token ticket coupon gift present prize
    medal trophy trophies pen pencil crayon marker eraser ruler notebook folder binder envelope stapler scissors
    desk chair seat table sofa bench bed lamp candle pillow blanket towel curtain mirror clock watch phone
    computer laptop printer tablet camera television radio battery batteries screw nail bolt hammer tool brick
    tile plank board pole fence window door floor room bedroom bathroom classroom house home apartment building
    school store shop office hotel restaurant farm garden field park pool lake river mountain island city cities
    town village country countries state street road bridge car truck bus van bike bicycle tricycle motorcycle
    scooter train plane boat ship canoe tire wheel spoke engine shirt skirt dress pants jeans sock shoe boot hat
    cap coat jacket sweater scarf scarves glove mitten tie belt outfit uniform necklace bracelet ring earring
    rock stone pebble shell seashell gem jewel diamond crystal star planet light bill check receipt share
    vaccine pill dose vitamin capsule stair stitch patch spot stripe hole layer lane track widget gadget machine
    robot device job task chore project report order sale product sample click view download like follower
    subscriber fan comment puzzle riddle trick joke wish vacation party parties course credit session shift
    meeting event show concert flight stop station route pushup situp squat jump kick punch shot hit run
    touchdown rebound assist season inning quiz quizzes exam quilt cage vase headband kite drum guitar piano
    violin copy copies diaper cloud flashlight selfie portrait shoebox oat gum pump souvenir costume mask
    ornament decoration wreath snowball snowflake snowman stuffie puppet figurine comic magazine newspaper flyer
    brochure pamphlet invitation valentine bookmark worksheet scarecrow locker backpack suitcase purse wallet
    umbrella tent canopy ladder shovel rake bulldozer tractor cart carriage wagon sled skateboard helmet racket
    racquet basketball baseball football volleyball softball dumbbell weight mat rug carpet verse note chord
    bagpipe trumpet flute speaker microphone channel program programme website blog vlog password key lock
    washer spring gear wheelbarrow hose sprinkler faucet sink bathtub shower toilet stall booth kiosk enclosure
    aquarium tank kennel coop barn stable hive nest den web pond stream creek ditch trench tunnel tower castle
    palace temple church museum library libraries theater theatre cinema bank hospital clinic pharmacy
    clip sprint vacuum paragraph podcast homer strikeout swimmer dancer kayak hiker pearl postcard magnet keychain
    lantern charger headphone retweet
    pharmacies factory factories mine warehouse garage basement attic kitchen closet hallway porch patio
    driveway sidewalk avenue continent galaxy galaxies atom molecule cell organism bacteria virus particle
    electron proton neutron species tribe nation army armies troop squad crew choir band orchestra cub seal
    otter walrus hippo rhino crocodile alligator iguana gecko chameleon newt salamander moth caterpillar
    grasshopper cricket mosquito mosquitoes ladybug firefly fireflies wasp hornet tick flea termite centipede
    scorpion crow raven hawk falcon sparrow robin finch flamingo flamingoes ostrich pelican seagull peacock
    salmon trout tuna cod minnow eel shrimp clam mussel squid octopus emu llama alpaca donkey mule cabbage
    lettuce spinach celery broccoli cauliflower eggplant zucchini squash beet yam asparagus garlic herb leek
    olive raisin fig apricot nectarine grapefruit tangerine cranberry cranberries blackberry blackberries papaya
    pomegranate guava cashew pecan pistachio hazelnut chestnut cereal granola oatmeal yogurt popsicle sundae
    pudding jelly jellies jam syrup sauce ketchup mustard mayonnaise spice cinnamon vanilla cocoa marmalade
    toast baguette wrap quesadilla nacho fry fries nugget drumstick rib roast ham bacon chop fillet lasagna
    spaghetti pasta ravioli sushi curry stew chili appetizer entree platter buffet feast picnic barbecue banquet
    lemonade cider cocktail espresso cappuccino teabag keg flask canteen thermos lid cork label tag die dice
    domino dominoes deck chess pawn knight bishop rook queen life lives reptile supervisor portfolio lawn hero
    heroes kit matchbox utensil treat outlet cape fowl clown sequin lego whistle minivan chimp recorder
    repetition sandal clove wrapper female male instrument baggie space fairy fairies elf elves instruction
    recipe cycle beaker cleaning porcupine race issue bookcase thorn skein firework rodent tap kernel pod square
    pomelo badge signature
"""
_BETWEEN = "per of each a an every in old apiece sq square squared cu cubic cubed"
LETTERS = frozenset("mgshlLNJWVAKCFtd")
"""Units of one letter, where the letter stands in `\\text` or behind a blank in prose."""
_IN_PROSE = "mgshlLNJWV"

_ENDINGS = ("ch", "sh", "s", "x", "z")


_OTHERS = "Mm Mg Ms Ml mW mHz mJ mV mPa"
_OTHER_BY_CASE = frozenset(_OTHERS.split())
"""Not what the list has in small letters: megametre, not millimetre; milliwatt, not megawatt."""


def _with_plurals(words: str) -> frozenset[str]:
    """Each word and its regular plural; irregular ones are written out."""
    singular = [word for word in words.split() if len(word) > 1]
    return frozenset(singular) | {word + ("es" if word.endswith(_ENDINGS) else "s") for word in singular}


_ALL = _MEASURES + _MONEY + _COUNTED
_SINGULAR = {word + ending: word for word in _ALL.split() if len(word) > 2 for ending in ("s", "es")}
UNITS = _with_plurals(_ALL)
_MEASURED = _with_plurals(_MEASURES)
_CONNECTING = frozenset(_BETWEEN.split())
_GLUED_LETTERS = 4
"""So long must a unit be to stand behind a number without a blank: `10weeks`, while `10cm` is a product of letters."""

_EXPONENT = re.compile(r"\^\s*+(?:\{\s*+)?[23]\s*+\}?")
_POWER = r"(?:\s*\^\s*(?:\{\s*[23]\s*\}|[23]))?"
_IN_TEXT = re.compile(rf"\\text\s*\{{([^{{}}]*)\}}{_POWER}")
_BEHIND = re.compile(rf"(?:(?<=[\d}}\])!])|(?<=\\pi))(\s*)([a-zA-Z][a-zA-Z .'/-]{{0,60}}){_POWER}$")
_HEAD_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2}")
_NUMBER = r"(?<![\w.,\\^{(\[])\d[\d,.]*(?:\s*/\s*\d+)?"
_LETTER = rf"[{_IN_PROSE}]|[a-zA-Z]{{1,3}}/[a-zA-Z]{{1,3}}"
_SQUARED = r"(?:\^\{?[23]\}?|[²³])?"
_PROSE = re.compile(rf"({_NUMBER}) ({_LETTER})(?={_SQUARED}\.?\s*(?:$|[,;]|\s(?:and|or)\s))")
_AFTER_FORMULA = re.compile(rf"\$ ({_LETTER})(?={_SQUARED}\.?\s*$)")


def letters_in_text(answer: str) -> str:
    """An answer as given, with units of one letter in prose put into `\\text`: `9 m`, but neither `9m` nor `$9 m$`."""
    if answer.count("$") == 2 and answer.lstrip().startswith("$"):
        return _AFTER_FORMULA.sub(lambda m: rf"$ \text{{{m.group(1)}}}", answer) if "$ " in answer else answer
    if " " not in answer or "$" in answer or "\\" in answer:
        return answer
    return _PROSE.sub(lambda m: rf"{m.group(1)} \text{{{m.group(2)}}}" if _is_short(m.group(2)) else m.group(), answer)


def _is_short(unit: str) -> bool:
    """One letter, or two units with a stroke between them."""
    names = unit.split("/")
    return all(name in LETTERS or name.lower() in UNITS for name in names)


def split_words(text: str) -> tuple[str, list[str]]:
    """A tidy text and the words it ends in, which stand in `\\text`, behind a blank, or are long enough without one."""
    start = text.rfind(r"\text")
    if start > 0 and (wrapped := _IN_TEXT.fullmatch(text, start)):
        return text[:start].strip(), _words(wrapped.group(1))
    behind = _BEHIND.search(text)
    if behind is None or _HEAD_WORD.search(text, 0, behind.start()):
        return text, []
    words = _words(behind.group(2))
    if any(len(word) == 1 and word != "a" for word in words):  # a factor, where it is not in prose
        return text, []
    if not behind.group(1) and (len(words) != 1 or len(words[0]) < _GLUED_LETTERS or words[0] not in UNITS):
        return text, []
    return text[: behind.start()].strip(), words


def _words(phrase: str) -> list[str]:
    """The words of a phrase, in small letters but for units that those would change."""
    names = _EXPONENT.sub("", phrase).replace("/", " per ").replace(".", " ").replace("-", " ").split()
    return [name if len(name) == 1 or name in _OTHER_BY_CASE else name.lower() for name in names]


def is_unit(words: list[str], *, letters: bool = False) -> bool:
    """Whether words are nothing but units and what joins them; `dog food` and `gold coins` say more than one word."""
    units = [word in UNITS or (letters and word in LETTERS) for word in words]
    if not any(units) or not all(unit or word in _CONNECTING for unit, word in zip(units, words, strict=True)):
        return False
    return all({first, second} & _CONNECTING or {first, second} <= _MEASURED for first, second in pairwise(words))


def one_unit(words: list[str]) -> str:
    """A unit in one number: `dollars` is `dollar`."""
    return " ".join(_SINGULAR.get(word, word) for word in words)
