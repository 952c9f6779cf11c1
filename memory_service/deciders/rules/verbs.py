"""English verbs: recognizes them and their tense, and forms them for "User"."""

from __future__ import annotations

import re

from memory_service.deciders.rules.word_lists import words

MODALS = words(
    """
    can can't cannot cant can’t could couldn't may might mightn't must mustn't needn't shall shan't should
    shouldn't will won't wont would wouldn't
    """
)
"""Verbs with no separate third-person form; verbs after them have none either."""

_SPECIAL = {
    "am": "is",
    "'m": "is",
    "have": "has",
    "do": "does",
    "haven't": "hasn't",
    "havent": "hasn't",
    "don't": "doesn't",
    "dont": "doesn't",
    "ain't": "isn't",
}

_PAST_ONLY = words(
    """
    ate became began bent bit bled blew bore bought bred broke brought built burnt came caught chose crept
    dealt did didn't drank dreamt drove dug fed fell felt fled flew forbade foresaw forgave forgot fought
    found froze gave got grew had hadn't heard held hid hung kept knelt knew laid learnt led left lent lit
    lost made meant met misled misunderstood outgrew overcame overheard overslept paid proved ran rang
    rebuilt redid retook rewrote rode rose said sang sank sat saw sent sewed shone shook shot showed slept
    slid smelt sold sought sped spelt spent spoilt spoke sprang spun stole stood strove struck stuck stung
    swam swept swore swung taught thought threw told took tore understood undertook undid upheld was wasn't
    went wept were weren't withdrew withheld woke won wore wound wrote wrung
    """
)

_PAST_RATHER = words("hit hurt quit shed shut split")
_PRESENT_RATHER = words("beat bet burst cast cost cut fit let put read reset set spread upset")

_PARTICIPLES = words(
    """
    been begun bitten blown borne broken chosen done drawn driven drunk eaten fallen flown forgiven
    forgotten frozen given gone got gotten grown hidden known lain lived proven ridden risen rung seen
    shaken shown spoken stolen sung sunk sworn swum taken thrown torn woken worn written
    """
)

_BASES_IN_ED = words(
    """
    bed bleed breed embed exceed feed heed misread need overfeed proceed seed shed shred speed succeed wed
    weed
    """
)

SURE_VERBS = words(
    """
    accept adopt afford agree allow appreciate argue arrange arrive ask attend avoid bake become begin
    believe belong blog borrow bring build buy carry celebrate choose collect come commute complain compose
    consider continue contribute create decide deliver depend deploy describe develop dislike dive do draw
    drive earn eat edit enjoy expect explain feel find finish follow forget get give go grow happen hate
    have hear help hope identify implement improve include intend invest join keep know lack lead learn
    leave like listen live loathe look lose love maintain make manage meditate meet mentor miss move need
    offer organise organize own paint pay perform practise prefer prepare produce program publish pursue put
    raise read receive recommend refuse relax remember rent repair require respect ride run say see seem
    sell send serve shop sing skate ski sleep smoke speak specialise specialize spend stay stream struggle
    study suffer suggest supervise swim take talk teach tell tend think translate travel try tutor
    understand use visit wait wake walk want watch wear weigh wish work worry write
    """
)
"""Words that are verbs wherever a verb can stand, whatever follows them."""

_VERBS_OR_NOUNS = words(
    """
    answer back balance bank base battle bike book box breed brew budget call camp care cause chair
    challenge change chat clean climb coach code combine comment compete concern control cook cost count
    cover crave cry cycle dance date deal debate debug demand design despise detest direct doubt dread dream
    dress drink drop edit end engineer excel exercise experience experiment fail fall farm favor favour fear
    feed fight film fish fit fix fly focus freelance game garden guard guess guide handle head hike hit hold
    host hunt interview iron jog journal judge juggle jump knit land laugh lecture let lift limit listen log
    major march mark market mind mine mix model name note order orient pack park partner pass patrol picture
    place plan plant play plot point practice present print process promise protect question quit race rank
    rate reach report research rest result return review row run sail save schedule score search set sew
    share shift show sign sketch skip snack snore sort sound sponsor spread stand start stop store stretch
    support surf suspect sweat tackle talk target taste tattoo teach test thank total track trade train
    treat trust turn type value view volunteer vote wash waste watch weave win wonder wrestle yearn
    """
)

VERBS = SURE_VERBS | _VERBS_OR_NOUNS

ADVERBS = words(
    """
    again almost already also always best better both either even ever first just kinda later long maybe
    mostly much neither never not now nowadays often once only perhaps pretty quite rather really seldom so
    sometimes soon sorta still sure then today too twice usually very well
    """
)
_VERBS_IN_LY = words("ally apply bully comply fly imply multiply ply rally rely reply supply tally")
_HABITUAL = words("always each every never often rarely sometimes usually")


def is_adverb(word: str) -> bool:
    """Return whether a word (lower case) may stand between a subject and its verb."""
    return word in ADVERBS or (word.endswith("ly") and len(word) > 4 and word not in _VERBS_IN_LY)


def is_past(word: str, habitual: bool = False) -> bool:
    """Return whether a verb is a past form. `habitual`: the clause has a word like "always"."""
    if word in _PAST_RATHER:
        return not habitual
    return word in _PAST_ONLY or (word.endswith("ed") and word not in _BASES_IN_ED and len(word) > 3)


def may_be_base(word: str) -> bool:
    """Return whether an unknown word may be the base form of a verb."""
    return len(word) > 2 and word.isalpha() and not word.endswith(("ing", "ed", "s", "ly"))


def is_participle(word: str) -> bool:
    """Return whether a word after "I'd" makes that "I had" and not "I would"."""
    return word in _PARTICIPLES or is_past(word, habitual=True)


def is_ambiguous_past(word: str) -> bool:
    """Return whether the past form of a verb equals its present."""
    return word in _PAST_RATHER or word in _PRESENT_RATHER


def is_habitual(words: list[str]) -> bool:
    """Return whether a clause is about a habit."""
    return not _HABITUAL.isdisjoint(words)


def is_verb_form(word: str) -> bool:
    """Return whether a word (lower case) is a form of a known verb."""
    if word in VERBS or word in MODALS or word in _SPECIAL or word in _PAST_ONLY or is_past(word):
        return True
    if word in ("is", "are", "has", "does", "isn't", "aren't", "hasn't", "doesn't"):
        return True
    return any(word == with_s(verb) for verb in _stems(word))


def _stems(word: str) -> list[str]:
    stems = []
    if word.endswith("s"):
        stems.append(word[:-1])
    if word.endswith("es"):
        stems.append(word[:-2])
    if word.endswith("ies"):
        stems.append(word[:-3] + "y")
    return [stem for stem in stems if stem in VERBS]


def third_form(verb: str) -> str:
    """Return the form of a present verb after "User"; keeps capitals and the kind of apostrophe."""
    special = _SPECIAL.get(verb.lower().replace("’", "'"))
    if special is None:
        return with_s(verb)
    if "’" in verb:
        special = special.replace("'", "’")
    return special.upper() if verb.isupper() and len(verb) > 1 else special


def with_s(verb: str) -> str:
    """Return a verb with the ending -s."""
    low = verb.lower()
    if re.search(r"[^aeiou]y$", low):
        stem, ending = verb[:-1], "ies"
    elif low.endswith(("quiz", "whiz")):
        stem, ending = verb, "zes"
    elif low.endswith("stomach") or re.search(r"[aeiou]o$", low):
        stem, ending = verb, "s"
    elif low.endswith(("s", "x", "z", "ch", "sh", "o")):
        stem, ending = verb, "es"
    else:
        stem, ending = verb, "s"
    return stem + (ending.upper() if verb.isupper() and len(verb) > 1 else ending)
