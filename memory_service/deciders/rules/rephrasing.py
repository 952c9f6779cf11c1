"""Puts statements of users about themselves into the third person, by rules for English.

The first mention of the speaker in a sentence is "User" or "User's"; later ones are "them", "their", "theirs"
and "themselves". As a subject it is always "User", because "they" could be other people. "We" is "User and
others" at the first mention, else "they": the others are unknown, and nothing is made up. "Our" is "User's",
then "their".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_service.deciders.rules import verbs
from memory_service.deciders.rules.kinship import is_relation, name_after, relation_at
from memory_service.deciders.rules.requests import without_request
from memory_service.deciders.rules.sentences import KEPT, sentences
from memory_service.deciders.rules.word_lists import words

_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|myself|im|ive|we|our|ours|us|ourselves)\b", re.IGNORECASE)
_WORD = re.compile(
    rf"(?P<kept>{KEPT.pattern}|\w+(?:[-/.@+&]\w+)+(?:['’]\w+)?)|\w+(?:['’]\w+)*", re.VERBOSE | re.DOTALL
)
_CALL_ME = re.compile(r"^(?:please\s+|just\s+|you\s+can\s+)*call me (?=[A-Z]\w+[.!]?$)", re.IGNORECASE)

_ENGLISH = words("a and are at by for from have i i'm is it my not of our that the to was with")
_FOREIGN = words(
    """
    au av bei che con das de della den der di du een el en es et het ich ik il ist ja jag je jeg jest la le
    les mi mijn mit na non och og para por på que się som sono til tu un una und w zu
    """
)

_NUMBERED = words(
    """
    act algebra article book calculus chapter class division figure grade level mark mk model part phase
    schedule section stage table tier title type volume war
    """
)
_AFTER_NUMERAL = words("and as at by covers era for from has in is of on or the to was which who with")
_AUXILIARIES = words("am do have")
_BEFORE_INVERSION = words("as neither never nor only rarely seldom so than")
_AFTER_HAD = words("a an best better my no the three two")
_NEGATIONS = words("didn't don't dont")
_NEW_TIME = words("currently now still today")
_SELDOM_INFINITIVE = words("dislike hate love prefer want")
_OBJECTS = words("him it me them us")
_COMPOUND = words("i i'd i'll i've")
_NO_VERBS_HERE = words("last when work")
_AFTER_IM = words("a allergic also always an based been from got never not the vegan vegetarian")
_COORDINATORS = words("& and but nor or then yet")
_NEW_SUBJECT = words(
    """
    although because he how i i'd i'll i'm i've if she since so that they unless until we we're we've what
    when where which while who whose
    """
)
_FOLLOWERS = words(
    """
    a about after all an any around as at before by each every for from her him his in into it its many me
    more most much my myself no of off on our out over some that the their them these this those to towards
    up us with without you
    """
)
_NEAR = 16
"""How many words from "my" on are searched for a name."""
_PLURAL_FORMS = {"'re": "are", "'ve": "have", "'d": "would", "'ll": "will", "'m": "are"}
_LATER = {"me": "them", "mine": "theirs", "myself": "themselves", "my": "their", "our": "their"} | {
    "ours": "theirs", "ourselves": "themselves", "us": "them", "we": "they"
}  # fmt: skip
_AT_FIRST = {"me": "User", "mine": "User's", "myself": "User", "my": "User's", "our": "User's"} | {
    "ours": "User's", "ourselves": "User and others", "us": "User and others", "we": "User and others"
}  # fmt: skip


def third_person(text: str) -> str:
    """Return a user's statement about themselves as a statement about "User".

    Requests to remember it are removed. A text in the third person or in another language, quotations, code
    and names are returned unchanged.
    """
    said, _ = without_request(text)
    if _CALL_ME.match(said):
        return _CALL_ME.sub("User wants to be called ", said)
    if not _FIRST_PERSON.search(said) or not _is_english(said):
        return said
    return "".join(_Sentence(sentence).rewritten() for sentence in sentences(said))


def _is_english(text: str) -> bool:
    found = [word.replace("’", "'") for word in re.findall(r"\w+(?:['’]\w+)?", text)]
    english = sum(word.lower() in _ENGLISH for word in found)
    foreign = sum(word in _FOREIGN for word in found)
    return english >= foreign


@dataclass
class _Word:
    before: str
    """The text between the previous word and this one."""
    text: str
    kept: bool

    @property
    def low(self) -> str:
        return "" if self.kept else self.text.lower().replace("’", "'")


class _Sentence:
    """One sentence during rewriting."""

    def __init__(self, text: str) -> None:
        self._words: list[_Word] = []
        end = 0
        for match in _WORD.finditer(text):
            self._words.append(_Word(text[end : match.start()], match.group(), bool(match.group("kept"))))
            end = match.end()
        self._tail = text[end:]
        self._add_apostrophes()
        self._mentioned = False

    def rewritten(self) -> str:
        """Return the sentence about "User"."""
        at = 0
        while at < len(self._words):
            self._rewrite(at)
            at += 1
        return "".join(word.before + word.text for word in self._words) + self._tail

    def _add_apostrophes(self) -> None:
        for at, word in enumerate(self._words):
            following = self._low(at + 1)
            if word.text in ("im", "Im", "ive", "Ive") and (
                following in _AFTER_IM or following.endswith("ing")
            ):
                word.text = "I'" + word.text[1:]

    def _rewrite(self, at: int) -> None:
        low = self._low(at)
        stem, _, ending = low.partition("'")
        ending = f"'{ending}" if ending else ""
        if stem == "i" and self._is_speaker(at):
            self._subject(at, ending)
        elif stem == "we" and self._is_pronoun(at):
            self._set(at, f"{self._mention('we')} {_PLURAL_FORMS.get(ending, '')}".rstrip())
        elif low in ("my", "our") and self._is_pronoun(at):
            self._possessive(at, low)
        elif low in _AT_FIRST and self._is_pronoun(at):
            self._set(at, self._mention(low))

    # --- "I" and its verb -----------------------------------------------------------------------

    def _subject(self, at: int, ending: str) -> None:
        plural = self._is_compound(at)
        self._mentioned = True
        if plural or self._low(at + 1) == "and":
            self._set(at, f"User {_PLURAL_FORMS.get(ending, '')}".rstrip())
            return
        if self._inverted(at):
            self._set(at, "User")
            return
        self._set(at, "User")
        if not ending:
            self._agree(at)
            return
        verb = {"'m": "is", "'ve": "has", "'ll": "will", "'d": "would"}.get(ending, ending)
        following = self._low(self._after_adverbs(at + 1))
        if ending == "'d" and (verbs.is_participle(following) or self._low(at + 1) in _AFTER_HAD):
            verb = "had"
        self._set(at, f"User {verb}")
        self._coordinate(at, bare=ending in ("'ll", "'d"), past=False)

    def _inverted(self, at: int) -> bool:
        """Correct the order of a verb before "I", as in "so do I"; return whether there is one."""
        before = self._low(at - 1)
        if before not in _AUXILIARIES | verbs.MODALS | {"did", "was", "had"} or self._words[at].before != " ":
            return False
        if at > 1 and self._low(at - 2) not in _BEFORE_INVERSION and "," not in self._words[at - 1].before:
            return False
        if before in _AUXILIARIES:
            self._set(at - 1, verbs.third_form(self._words[at - 1].text))
        return True

    def _agree(self, at: int) -> None:
        """Conjugate the verb of the subject at `at`, and those that go with it."""
        verb = self._after_adverbs(self._after_insertion(at + 1))
        low = self._low(verb)
        if not low or low in _COORDINATORS or low in _FOLLOWERS:
            return
        past = verbs.is_past(low, verbs.is_habitual([self._low(k) for k in range(at + 1, verb)]))
        past = past or (verbs.is_ambiguous_past(low) and self._tells_past())
        modal = low in verbs.MODALS
        if not past and not modal:
            self._set(verb, verbs.third_form(self._words[verb].text))
        emphatic = low in ("do", "did") and self._low(self._after_adverbs(verb + 1)) in verbs.VERBS
        self._coordinate(verb, bare=modal or emphatic or low in _NEGATIONS, past=past)

    def _coordinate(self, verb: int, *, bare: bool, past: bool) -> None:
        """Conjugate the verbs that share the subject of the one at `verb`.

        `bare`: they stay in the base form, after a modal verb or "to".
        """
        last, infinitive = verb, False
        at = verb + 1
        while at < len(self._words) and self._low(at) not in _NEW_SUBJECT:
            low = self._low(at)
            if low == "to" and self._low(at + 1) in verbs.VERBS | {"be"} and not self._is_way_to_work(at):
                infinitive = True
            start = at + 1 if low in _COORDINATORS else at if "," in self._words[at].before else 0
            found = self._after_adverbs(start) if start else 0
            between = {self._low(k) for k in range(start, found)}
            if (low in ("but", "yet") and "not" not in between) or between & _NEW_TIME:
                bare = infinitive = False
            free = not bare and (not infinitive or self._low(found) in _SELDOM_INFINITIVE)
            if found and self._is_finite(found, adjacent=start <= last + 2, free=free, past=past):
                low = self._low(found)
                if low not in verbs.MODALS:
                    self._set(found, verbs.third_form(self._words[found].text))
                bare, infinitive = low in verbs.MODALS | _NEGATIONS, False
                last = at = found
            at += 1

    def _is_finite(self, at: int, *, adjacent: bool, free: bool, past: bool) -> bool:
        """Return whether a word after "and" is a verb with the same subject."""
        low, following = self._low(at), self._low(at + 1)
        if not low or low in ("am", "don't", "dont", "haven't") or low in verbs.MODALS:
            return bool(low)
        if not free or (past and verbs.is_ambiguous_past(low)):
            return False
        if low not in verbs.VERBS:
            known = low in _FOLLOWERS | _COORDINATORS or not verbs.may_be_base(low)
            return not known and following in (_FOLLOWERS if adjacent else _OBJECTS)
        return adjacent or low in verbs.SURE_VERBS or following in _FOLLOWERS or verbs.is_adverb(following)

    def _after_insertion(self, at: int) -> int:
        """Return the place of the verb in "I, for one, think"; else `at`."""
        if at < len(self._words) and self._words[at].before == ", ":
            for end in range(at + 1, min(at + 4, len(self._words))):
                if self._words[end].before == ", ":
                    return end
        return len(self._words) if self._breaks(at) else at

    def _is_way_to_work(self, at: int) -> bool:
        return (
            self._low(at + 1) == "work"
            and re.match(r"go|walk|driv|commut|get|bike|cycl|run|way|ride|took|take", self._low(at - 1))
            is not None
        )

    def _tells_past(self) -> bool:
        lows = {word.low for word in self._words}
        return bool(lows & {"yesterday", "ago", "last"}) or any(
            re.fullmatch("(?:19|20)[0-9]{2}", x) for x in lows
        )

    # --- "my" -----------------------------------------------------------------------------------

    def _possessive(self, at: int, low: str) -> None:
        self._name(at)
        speaker = next(
            (k for k in range(at + 2, at + 6) if self._low(k) == "i" and self._is_compound(k)), None
        )
        if low == "my" and speaker is not None and not self._mentioned:
            # "My wife and I" -> "User and their wife"
            self._set(at, "User and their")
            self._mentioned = True
            del self._words[speaker - 1 : speaker + 1]
            return
        self._set(at, self._mention(low))

    def _name(self, at: int) -> None:
        """Make "my wife is Jane" "my wife is named Jane"."""
        near = self._words[at : at + _NEAR]
        texts = [word.text for word in near]
        verb = relation_at(texts, 1)
        if verb is not None and name_after(texts, [word.before for word in near], verb):
            near[verb].text += " named"

    # --- what a word is -------------------------------------------------------------------------

    def _is_speaker(self, at: int) -> bool:
        """Return whether "I" or "i" is the speaker, not a numeral, an initial or a variable."""
        word = self._words[at]
        if len(word.text) > 1:
            return self._is_pronoun(at) or word.text[0] == "I"
        following = self._low(self._after_adverbs(at + 1))
        gap = self._words[at + 1].before if at + 1 < len(self._words) else self._tail
        if (self._starts(at) and gap[:1] in (".", ")")) or self._begins_title(at):
            return False
        if word.text == "i":
            return (
                gap == " "
                and verbs.is_verb_form(following)
                and self._low(at - 1) not in ("index", "variable")
            )
        before = self._words[at - 1] if at and word.before == " " else None
        if before is None or before.kept:
            return True
        if before.low in _NUMBERED and following not in ("am", "have", "was", "had"):
            return (
                before.text[0].isupper() is False
                and not gap.strip()
                and verbs.is_verb_form(following)
                and following not in _AFTER_NUMERAL
            )
        if before.text[0].isupper() and not self._starts(at - 1):
            return gap == " " and following not in _AFTER_NUMERAL
        return True

    def _begins_title(self, at: int) -> bool:
        """Return whether capitalized words follow, as in "I Love Lucy"."""
        following = [word.text for word in self._words[at + 1 : at + 3]]
        return len(following) == 2 and all(text.istitle() for text in following)

    def _is_pronoun(self, at: int) -> bool:
        """Return whether a word is a pronoun, not a part of a name: names have capitals."""
        text = self._words[at].text
        if text[0].islower():
            return True
        if not self._starts(at) or (text.isupper() and len(text) > 1):
            return False
        following = self._words[at + 1].text if at + 1 < len(self._words) else ""
        names = self._low(at) in ("me", "mine", "we", "us") and following[:1].isupper()
        return not names

    def _is_compound(self, at: int) -> bool:
        """Return whether "I" is the second half of a subject, as in "Jane and I"."""
        if self._low(at) not in _COMPOUND or self._low(at - 1) != "and" or at < 2:
            return False
        following = self._low(at + 1)
        if self._words[at - 1].before != " " or following in ("am", "was"):
            return False
        if following in ("are", "were"):
            return True
        before = range(at - 1)
        if any(self._words[k].text.split()[0] == "User" for k in before):
            return False
        # "My sister plays and I sing" is two sentences.
        lows = [self._low(k) for k in before if self._low(k) not in _NO_VERBS_HERE]
        return not any(verbs.is_verb_form(low) for low in lows if not is_relation(low))

    def _starts(self, at: int) -> bool:
        """Return whether a word begins a sentence, or a line of a list."""
        return at == 0 or re.search(r"[.!?:;…]\S*\s|\n|[•*—–-]\s$", self._words[at].before) is not None

    def _after_adverbs(self, at: int) -> int:
        while at < len(self._words) and verbs.is_adverb(self._low(at)) and not self._breaks(at):
            at += 1
        return at

    def _breaks(self, at: int) -> bool:
        """Return whether there is punctuation before a word."""
        return at < len(self._words) and self._words[at].before.strip() != ""

    def _mention(self, low: str) -> str:
        text = (_LATER if self._mentioned else _AT_FIRST)[low]
        self._mentioned = True
        return text

    def _low(self, at: int) -> str:
        return self._words[at].low if 0 <= at < len(self._words) else ""

    def _set(self, at: int, text: str) -> None:
        self._words[at].text = text
