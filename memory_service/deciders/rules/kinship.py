"""Relatives, friends and animals of a person, and their names."""

from __future__ import annotations

from collections.abc import Sequence

from memory_service.deciders.rules.word_lists import words

_ONE = words(
    """
    accountant assistant aunt baby babysitter bestie boss boyfriend brother cat ceo child client co-founder
    co-worker coach cofounder colleague cousin coworker cto dad daughter dentist doctor dog ex father fiance
    fiancee fiancé fiancée flatmate friend girlfriend goddaughter godfather godmother godson granddaughter
    grandfather grandma grandmother grandpa grandson granny hamster horse housemate husband intern kid
    kitten landlady landlord lawyer lead mama manager mentee mentor mom mother mum nanny neighbor neighbour
    nephew niece papa parrot partner pet pony professor puppy rabbit roommate sibling sister son spouse
    stepbrother stepdaughter stepfather stepmother stepsister stepson student supervisor teacher teammate
    therapist trainer tutor twin uncle wife
    """
)
_WITH_S = frozenset(one for one in _ONE if not one.endswith(("child", "y", "s")))
_MANY = words("babies children husbands kids parents ponies puppies twins wives") | frozenset(
    f"{one}s" for one in _WITH_S
)

_NO_NAMES = words(
    """
    afghan african algerian american arab argentinian armenian asian atheist australian austrian bangladeshi
    belgian brazilian british buddhist bulgarian canadian catholic chilean chinese christian colombian
    croatian cuban czech danish dutch egyptian english estonian ethiopian european february filipino finnish
    french friday georgian german ghanaian greek hindu hungarian icelandic indian indonesian iranian iraqi
    irish israeli italian jamaican january japanese jewish kenyan korean latina latino latvian lebanese
    lithuanian malaysian march mexican monday mormon moroccan muslim nepalese nigerian norwegian orthodox
    pakistani persian peruvian polish portuguese protestant romanian russian saturday scottish serbian
    siamese slovak slovenian spanish sunday swedish swiss syrian taiwanese thai thursday tuesday tunisian
    turkish ukrainian user venezuelan vietnamese wednesday welsh
    """
)
"""Capitalized words after "is" that are not names."""


def is_relation(word: str) -> bool:
    """Return whether a word is a relation that a person may have, such as "wife" or "boss"."""
    low = word.lower()
    return low in _ONE or low in _MANY or low.removesuffix("-in-law").removeprefix("ex-") in _ONE


def relation_at(words: Sequence[str], begin: int) -> int | None:
    """Return the index of "is" or "are" in "wife is", "best friend is" and the like; None if there is
    none.
    """
    for at in range(begin, min(begin + 3, len(words) - 1)):
        if is_relation(words[at]):
            wanted = "are" if words[at].lower() in _MANY else "is"
            if words[at + 1] == wanted:
                return at + 1
        elif not words[at].islower():
            return None
    return None


def name_after(words: Sequence[str], gaps: Sequence[str], verb: int) -> bool:
    """Return whether only a bare name follows the verb. `gaps` are the texts before each word."""
    many = words[verb] == "are"
    at = verb + 1
    while at < len(words) and (_is_name(words[at]) or (many and words[at] == "and")):
        if gaps[at] != " " and not (many and gaps[at] == ", "):
            break
        at += 1
    named = at - verb - 1
    if not 0 < named <= (9 if many else 3):
        return False
    return at == len(words) or gaps[at].strip() != "" or words[at] in ("and", "who", "but")


def _is_name(word: str) -> bool:
    if not word[0].isupper() or (word.isupper() and len(word) > 1):
        return False
    return word.isalpha() and word.lower() not in _NO_NAMES


_OTHERS = (_ONE | _MANY) - _WITH_S - {f"{one}s" for one in _WITH_S}
RELATION = f"(?:{'|'.join(sorted(_OTHERS))}|(?:{'|'.join(sorted(_WITH_S))})s??)(?:-in-law)?"
"""A regular expression for one such word."""
