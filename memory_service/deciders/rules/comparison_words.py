"""English words and phrases for deciding whether two facts say the same.

Facts in other languages are compared by their words and numbers alone.
"""

from __future__ import annotations

import re


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NEGATION = "NOT"
"""The token for every way to say "not"."""

MONTHS = _words(
    """
    january february march april may june july august september october november december
    """
)
_MONTH = "(" + "|".join(MONTHS) + ")"

_WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
DATES = frozenset(
    (*MONTHS, *_WEEKDAYS, *(f"{day}s" for day in _WEEKDAYS), "today", "yesterday", "tomorrow", "tonight")
)

# Each is applied to a lower-case text, in order. Negations become "not".
PHRASES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"(\w)n't\b", r"\1 not"),
        (r"\bthe user\b", "user"),
        (r"\b(?:the )?(\d{1,2})(?:st|nd|rd|th)?(?: of)? " + _MONTH + r"\b", r"\1 \2"),
        (r"\b" + _MONTH + r" (?:the )?(\d{1,2})(?:st|nd|rd|th)?\b(?![:.]\d)", r"\2 \1"),
        (r"\b((?:start|begin|began|love)\w*) to\b", r"\1"),
        # "the name of User's cat", "the wife of User"
        (r"\b(?:the )?name of (user(?:'s [\w-]+)?) is\b", r"\1 is"),
        (r"(?<![\w-])(?:the )?([\w-]+) of user\b(?!')", r"user's \1"),
        (r"\b(user(?:'s [\w-]+){0,3})'s name is\b", r"\1 is"),
        # A thing or relative of the user that is introduced by name.
        (
            r"\buser (?:has|owns|has got) an? ([\w -]{1,60}?),? (?:who|which|that)? ?(?:is )?(?:named|called) ",  # noqa: E501
            r"user's \1 is ",
        ),
        (r"\b(?:is|are) (?:named|called) ", "is "),
        (r"\buser is married to (?=[\w ]{1,60}$)", "user's spouse is "),
        (r"\b(?:has|have) been (?=\w+ing\b)", "is "),
        (r"\b(?:has|have) (got|quit|stopped|given up|moved|relocated)\b", r"\1"),
        (r"\bgot (?=an? |\d|two|three)", "have "),
        (r"\b(?:no longer|not any more|not anymore)\b", "not"),
        (r"\b(?:any ?more|any longer|at all|right now|at the moment|by profession)\b", ""),
        (r"\b(?:stop(?:s|ped)?|quit|gave up|given up|ceased) (?=\w+ing\b)", "not "),
        (r"\b(?:can|could) not (?:stand|bear)\b|\b(?:hates?|dislikes?|detests?|loathes?)\b", "not like"),
        (r"\b(?:is|are) unable to\b", "can not"),
        (r"\b(?:is|are) able to\b", "can"),
        (r"\bunmarried\b", "not married"),
        (r"\blacks?\b", "not have"),
        (r"\bavoid(?:s|ed|ing)?\b", "not have"),
        (r"\bwithout\b", "with not"),
        (r"\b(?:never|none|nobody|nothing|neither|nor|no)\b", "not"),
        (r"\b(?:lives?|living|resid(?:es?|ing)|(?:is|are) (?:based|located)) in\b", "live in"),
        (r"\b(?:comes?|originates?) from\b", "is from"),
        (r"\b(?:is employed|works?|working) (?:by|for|at)\b", "work at"),
        (r"\b(?:works|is working|is employed) as\b", "is"),
        (r"'s (?:job|profession|occupation) is (?:an? )?", " is "),
        (r"\b(?:would rather|favou?rs|prefers to|likes to|loves to|enjoys)\b(?: get\b)?", "likes"),
        (r"\b(?:is (?:very )?fond of|is a (?:big )?fan of|is into)\b", "likes"),
        (r"\b(likes|prefers|loves) (?:using|having|getting|receiving)\b", r"\1"),
        (r"\b(?:has|have) (?:an allergy to) ", "is allergic to "),
        (r"\b(?:has|have) an? ([\w-]+) allergy\b", r"is allergic to \1"),
        (r"\b(?:goes|going|go) (running|swimming|hiking|cycling|climbing|skiing|jogging|sailing)\b", r"\1"),
        (r"\b(?:commutes|travels|goes) to (?:work|the office) by (?:bike|bicycle)\b", "cycles to work"),
        (r"\b(learn(?:s|ed|ing)?) to play (?:the )?", r"\1 "),
        (r"\b(\d{1,2}):00\b", r"\1"),
        (r"(?:'s age is| is aged) (?=\d)", " is "),
        (r"\bis (\d+) years? (?:old|of age)\b", r"is \1"),
    )
)  # fmt: skip

NUMBERS = {
    word: str(value)
    for value, word in enumerate(
        _words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty
    """
    )
    )
} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80",
    "ninety": "90", "hundred": "100", "thousand": "1000", "million": "1000000", "dozen": "12",
    "half": "0.5", "once": "1x", "twice": "2x", "thrice": "3x",
}  # fmt: skip

ORDINALS = {
    word: f"{value}th"
    for value, word in enumerate(
        _words(
            """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
    """
        ),
        1,
    )
}

# Words without meaning by themselves.
FILLERS = frozenset(
    _words(
    """
    a an the is are be been being do does that which who this these very really also just
    currently now so s any there
    """
    )
)  # fmt: skip

# What no longer holds did hold before, unlike what never did.
ENDED = re.compile(
    r"\b(?:no longer|any ?more|any longer|stop(?:s|ped)? \w+ing|quit|gave up|given up|ceased)\b"
)

# Before a day or a year a preposition has no meaning: "is on 3 May" is "is 3 May".
DATED = re.compile(
    r"\bon (?=(?:\d{1,2} " + _MONTH + r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b)"
    r"|\bin (?=(?:\d{4}|" + _MONTH + r")\b)"
)

# These are left out; each begins a new part of a sentence.
JOINTS = frozenset(("of", "and"))
# These begin a new part, and are compared without their place among the words: "left Rome" is not
# "left for Rome".
LINKS = frozenset(("to", "for", "as", "in", "on", "at"))
# These change who does what, and begin a new part.
ROLES = frozenset(
    _words(
        """
    with by from over than before after until since about against between through except instead under
    above below near into towards but or if unless because when while during
    """
    )
)

# These join clauses, each of which may have parts.
CLAUSES = frozenset(_words("and but or if unless because when while until before after since than"))

# A wrong pair here loses a fact: only words that mean the same when said of a person belong here.
_SYNONYMS = """like love enjoy prefer adore
have own possess
child kid
bicycle bike
film movie
flat apartment
automobile car
mobile cellphone smartphone
colour color
favourite favorite
begin start
large big
short concise brief
reply answer response
mother mom mum
father dad
company firm
manager boss
app application
photo photograph picture
doctor physician
lawyer attorney
program code
programmer coder
speak talk
purchase buy
holiday vacation
spouse wife husband
theme mode
create build develop make
organise organize
telephone phone
television tv
study learn"""
SYNONYMS = {word: group[0] for group in map(_words, _SYNONYMS.splitlines()) for word in group}

# Not mapped to their synonyms when negated: a person who does not love it may like it.
STRONG = frozenset(("love", "adore", "prefer", "enjoy"))

# "does not always eat meat" is not the opposite of "eats meat".
SCOPES = frozenset(_words("always only every all everyone everything often usually necessarily much just"))

# Irregular past forms, and their bases.
PAST_FORMS = {
    "was": "be", "were": "be", "had": "have", "did": "do", "went": "go", "ran": "run", "bought": "buy",
    "taught": "teach", "wrote": "write", "spoke": "speak", "met": "meet", "kept": "keep", "drove": "drive",
    "drank": "drink", "ate": "eat", "slept": "sleep", "swam": "swim", "sold": "sell", "grew": "grow",
    "became": "become", "began": "begin", "flew": "fly", "rode": "ride", "sang": "sing", "won": "win",
    "felt": "feel", "found": "find", "knew": "know", "took": "take", "gave": "give", "got": "get",
    "built": "build", "made": "make", "came": "come", "thought": "think", "said": "say", "led": "lead",
}  # fmt: skip

IRREGULAR = {
    "children": "child", "wives": "wife", "men": "man", "women": "woman", "feet": "foot", "mice": "mouse",
    "people": "person", "knives": "knife", "lives": "live", "has": "have", "does": "do", "goes": "go",
}  # fmt: skip

# Values that exclude each other, if a person prefers one, wants it or is it.
OPPOSITES = frozenset(
    frozenset(pair.split())
    for pair in (
        "dark light", "left right", "always never", "more less", "short long", "short detail",
        "formal informal", "formal casual", "metric imperial", "celsius fahrenheit", "tab space",
        "window aisle", "introvert extrovert", "early late", "hot cold", "sweet savoury", "remote onsite",
        "morning evening", "morning night", "before after", "former current", "public private",
        "verbose terse", "ios android", "automatic manual", "enabled disabled", "on off",
    )
)  # fmt: skip

MARITAL = frozenset(("single", "married", "divorced", "widowed", "engaged", "separated"))

PROFESSIONS = frozenset(
    _words(
    """
    accountant actor analyst architect artist baker barista builder butcher carpenter chef chemist coach
    consultant cook dentist designer developer director doctor driver economist editor electrician
    engineer farmer firefighter gardener hairdresser historian journalist judge lawyer lecturer
    librarian manager mechanic midwife musician nurse painter paramedic pharmacist photographer
    physicist pilot plumber policeman postman professor programmer psychologist receptionist researcher
    salesman scientist secretary singer solicitor surgeon tailor teacher therapist translator tutor vet
    waiter waitress writer student
    """
    )
)  # fmt: skip
# A person may be one of these besides another profession.
PASTIMES = frozenset(
    _words(
        """
    actor artist baker carpenter coach cook director gardener manager musician painter photographer
    singer student translator tutor writer
    """
    )
)
# Professions that are often the same one by another name, or held at once.
PROFESSION_FAMILIES = (
    frozenset(_words("developer engineer programmer architect scientist analyst designer")),
    frozenset(_words("doctor surgeon physician psychologist therapist")),
    frozenset(_words("teacher professor lecturer researcher tutor coach scientist")),
    frozenset(_words("manager director consultant engineer analyst")),
    frozenset(_words("writer editor journalist translator")),
    frozenset(_words("musician singer artist actor painter photographer")),
)

# A person who lives in a town also lives in a country.
REGIONS = frozenset(
    _words(
    """
    africa america argentina asia australia austria bavaria belgium brazil britain bulgaria california
    canada catalonia chile china colombia croatia cuba czechia denmark egypt england estonia europe
    finland florida france georgia germany ghana greece hungary iceland india indonesia iran iraq
    ireland israel italy japan kenya korea latvia lithuania luxembourg malaysia massachusetts mexico
    morocco nepal netherlands nigeria norway ontario oregon pakistan peru philippines poland portugal
    quebec romania russia scotland serbia singapore slovakia slovenia spain sweden switzerland taiwan
    tanzania texas thailand tunisia turkey uganda uk ukraine us usa usa vietnam wales kingdom states
    zealand emirates
    """
    )
)  # fmt: skip

# Lists after these words may be in any order.
LISTED = re.compile(
    r"\b(?P<verb>speaks?|likes?|drinks?|plays?) (?P<list>[\w+#-]+(?:, [\w+#-]+)*),? and (?P<last>[\w+#-]+)"
    r"(?=$|[.,;]| (?:in|on|at|with|for)\b)"
)

# A person has one of these at a time; a new value ends the old one.
SINGLE = frozenset(
    _words(
        """
    age birthday phone email address salary budget height weight timezone pronouns nickname surname
    hometown employer deadline wedding anniversary nationality username handle
    """
    )
)
# Values of these are numbers; other words say something else, as in "the phone is broken".
NUMERIC = frozenset(_words("age phone address salary budget height weight"))
SINGLE_RELATIONS = frozenset(
    _words(
        """
    wife husband spouse partner girlfriend boyfriend fiance fiancee mother father mom mum dad boss
    manager
    """
    )
)

# Counts of these at different times differ without excluding each other.
EVENTS = frozenset(
    _words(
        """
    meeting appointment call interview exam flight deadline class lesson date visit talk game match
    """
    )
)
