"""Find facts about the user in what they said, by patterns of English.

Few wrong facts matter more than many facts: what asks, supposes or tells of the moment is left out.
"""

from __future__ import annotations

import re

import msgspec

from memory_service.domain.facts import verbs
from memory_service.domain.facts.categories import Category
from memory_service.domain.facts.importance import temporary_words, vague_words
from memory_service.domain.facts.kinship import RELATION
from memory_service.domain.facts.requests import without_request
from memory_service.domain.facts.sentences import KEPT, sentences

CONTENT_CHARS_MIN = 10
CONTENT_CHARS_MAX = 500
_REASONING_CHARS_MAX = 200


class Candidate(msgspec.Struct, frozen=True):
    """A sentence that says something about the user."""

    content: str
    """The sentence as it was said."""
    category: Category
    reasoning: str
    """Why it is worth remembering, in 10 to 200 characters."""
    explicit: bool = False
    """The user asked for it to be remembered."""


_START = (
    r"(?:^|[,;:()]\s*|\s[-–—]\s|\b(?:and|but|because|since|so|as|also|btw|by\ the\ way|well|actually|hi|hello|hey|though"
    r"|however|yes|no|yeah|oh)[,!]?\s+|^(?:at|in|on|for|as|since|these|most|every|outside|besides|apart|nowadays|over)\b[^,.]{0,40}?[,\s]\s*)"
)
_ADVERBS = r"(?:(?:also|just|still|now|both|even|very\ much|(?!only)\w{3,}ly)\s+)*"
_I = rf"{_START}I\s+{_ADVERBS}"
_AM = rf"{_START}I(?:['’]?m|\s+am)\s+{_ADVERBS}"
_AM_OR_WE = rf"{_START}(?:I(?:['’]?m|\s+am|['’]?ve\s+been|\s+have\s+been)|we(?:['’]re|\s+are|['’]ve\s+been|\s+have\s+been))\s+{_ADVERBS}"
_MY = rf"{_START}(?:my|our)\s+"
_RELATIVE = rf"(?:[a-z]+\s+){{0,2}}(?:{RELATION})"
_NUMBER = r"(?:an?|one|two|three|four|five|six|seven|\d+)"
_NOT_AN_OBJECT = r"(?!\s*(?:$|[,.!;]|it\b|that\b|this\b|these\b|those\b|you\b|your\b|how\ you|the\ way\ you|to\ (?:say|ask|bother|think|admit)\b))"

_PATTERNS = [
    (Category.RELATIONSHIP, "The user tells of a person in their life", [
        rf"{_MY}{_RELATIVE}(?:['’]s)?\s+(?:[A-Z][\w'’-]+\s+)?(?:name\b|named\b|called\b|works\b|lives\b|loves\b|likes\b|hates\b"
        r"|prefers\b|has\b|have\b|live\b|work\b|studies\b|plays\b|teaches\b|speaks\b|runs\b|owns\b|collects\b|and\ I\b)",
        rf"{_MY}{_RELATIVE},?\s+(?:[A-Z][\w'’-]+,?\s+)?(?:is|are|was|were)\s+(?:{_NUMBER}\b|the\b|(?-i:[A-Z])|my\b|our\b|from\b|named\b|called\b"
        r"|allergic\b|vegetarian\b|vegan\b|deaf\b|blind\b|diabetic\b|autistic\b|retired\b|born\b)",
        rf"{_I}(?:have|have\s+got)\s+{_NUMBER}\s+{_RELATIVE}\b",
        rf"{_START}I['’]ve\s+got\s+{_NUMBER}\s+{_RELATIVE}\b",
        rf"{_I}(?:work|collaborate|live|am\ working|share\ an?\ \w+)\s+(?:closely\s+)?with\s+(?:(?-i:[A-Z])\w+|my\ {_RELATIVE})",
        rf"{_I}(?:report\ to|mentor|manage)\s+(?:(?-i:[A-Z])\w+|{_NUMBER}\ \w+)",
        rf"{_AM}(?:married\ to|engaged\ to|dating|related\ to|(?:the\s+)?(?:mother|father|mom|dad|parent)\ of)\b",
        rf"^(?-i:[A-Z])[\w'’-]+(?:\s+(?-i:[A-Z])[\w'’-]+)?\s+is\s+(?:my|our)\s+{_RELATIVE}\b",
    ]),
    (Category.PREFERENCE, "The user states a preference", [
        rf"{_I}(?:(?:always|never|generally|usually|do)\s+)?(?:like|love|hate|dislike|prefer|enjoy|adore|detest|loathe|despise|favou?r|avoid)\b{_NOT_AN_OBJECT}",
        rf"{_I}(?:can['’]?t\ stand|cannot\ stand|can['’]?t\ eat|cannot\ eat|(?:don['’]?t|do\ not)\ (?:really\ )?(?:like|eat|drink|enjoy|use|want\ you\ to))\b{_NOT_AN_OBJECT}",
        rf"{_AM}(?:allergic\ to|intolerant|a\ (?:\w+\ )?fan\ of|fond\ of|into\ \w|keen\ on|interested\ in|passionate\ about|not\ a\ (?:\w+\ )?fan\ of|(?:a\ )?vegetarian|(?:a\ )?vegan|(?:\w+-)intolerant)\b",
        rf"{_START}(?:I['’]d|I\s+would)\s+(?:always\s+|much\s+)?(?:rather|prefer)\b{_NOT_AN_OBJECT}",
        rf"{_MY}(?:\w+\s+)?(?:favou?rite|favou?rites|preferred|go-to)\b",
        rf"{_I}(?:tend\ to|only\s+(?:use|drink|eat|buy|wear|read|watch|listen))\b",
        rf"{_I}(?:always|never)\s+(?P<verb>[a-z'’]+)\b",
    ]),
    (Category.PROJECT, "The user tells what they work on", [
        rf"{_AM_OR_WE}(?:building|developing|working\ on|writing|creating|designing|launching|founding|starting|researching"
        r"|renovating|organi[sz]ing|migrating|rewriting|porting|prototyping|learning|studying\ for|training\ for"
        r"|preparing\ for|making|planning)\s+(?!(?:it|this|that|you|to|something)\b|an?\ (?:\w+\ )?(?:e-?mail|message|mail|reply|text)\b)\w",
        rf"{_I}(?:run|own|founded|maintain|started|lead)\s+(?:an?|the|my)\s+(?:\w+\s+){{0,3}}(?:company|startup|business|blog|podcast|project|library|shop|channel|team|agency|website)\b",
        rf"{_MY}(?:\w+\s+){{0,2}}(?:project|startup|start-up|app|thesis|dissertation|book|novel|blog|podcast|website|product|codebase|stack|backend|frontend|repo|repository|company|team)\s+(?:is\s+(?:an?\b|about\b|called\b|named\b|written\b|built\b)|uses|runs|deals|targets|has)\b",
        rf"{_START}we\s+{_ADVERBS}(?:use|deploy|host|run|ship|release|maintain)\s+(?!it\b|this\b|that\b)\w",
    ]),
    (Category.IDENTITY, "The user tells who they are", [
        rf"{_MY}(?:full\ |first\ |last\ |real\ |nick)?name(?:['’]s|\s+is)\b",
        r"^(?:please\s+|just\s+|you\ can\s+)*call\ me\s+(?-i:[A-Z])\w+[.!]?$",
        rf"{_AM}(?:called|known\ as|from|originally\ from|based\ in|living\ in|employed|retired|married|single|divorced|engaged|left-handed|deaf|blind|colou?r[- ]?blind|diabetic|autistic|dyslexic|bilingual|self-employed|unemployed)\b",
        rf"{_AM}(?:an?|the)\s+(?!(?:bit|little|few|lot|minute|mess|moment|one|couple|tad|sure|while|same|person\ who|only\ one)\b|hour\b)\w",
        rf"{_AM}not\s+an?\s+(?!bit|fan)\w",
        rf"{_AM}\d{{1,3}}(?:\s+years?\s+old\b|\s*(?:$|[.,!]|and\b))",
        rf"{_AM}(?-i:[A-Z][a-z]+)\b",
        rf"{_I}(?:live|reside)\s+(?:in|near|at|on|with|alone)\b",
        rf"{_I}(?:go\ by|come\ from|grew\ up|was\ born|was\ raised|turned\s+\d+|graduated|studied|majored|moved\ (?:to|from)|speak\s+(?-i:[A-Z])|study\b)",
        rf"{_I}(?:work|worked|freelance|teach|used\ to\ work)\s+(?:as|at|for|in)\b(?!\s+(?:it|this|that)\b)",
        rf"{_I}(?:was|used\ to\ be)\s+an?\s+(?!bit|little|few)\w+",
        rf"{_I}(?:have|hold)\s+an?\s+(?:\w+['’]?s?\s+)?(?:degree|phd|master|bachelor|diploma)\b",
        rf"{_MY}(?:\w+\s+)?(?:job|profession|occupation|birthday|age|hometown|nationality|pronouns|native\ language|mother\ tongue|e-?mail(?:\ address)?|phone\ number|address|time\ ?zone|employer)(?:['’]s|\s+is|\s+are)\b",
    ]),
]  # fmt: skip
_RULES = [
    (category, label, re.compile(pattern.replace("\\ ", r"\s+"), re.IGNORECASE))
    for category, label, patterns in _PATTERNS
    for pattern in patterns
]

_BARE_REQUEST = re.compile(
    r"^\W*(?:please\s+|can\ you\s+|could\ you\s+|and\s+)*(?:remember|save|note|memori[sz]e|keep|don['’]?t\ forget)\s+(?P<what>this|that|it)"
    r"(?:\s+(?:in\ mind|please|for\ me|for\ later))*\W*$".replace("\\ ", r"\s+"),
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless)\s+(?:I|we|my|it|you|there)\b|\bwhat\s+if\b|\bas\s+if\b|\b(?:suppose|imagine|pretend|assume|hypothetically|"
    r"let['’]?s\s+say|say\s+I|I\s+wish|wish\s+I|would\s+be|could\s+have|would\s+have|should\s+have)\b|\bI['’]?d\s+(?:like|love|be)\b|"
    r"\bI\s+would\s+(?:like|love|be)\b|\bif\s+only\b|\btrying\s+to\s+decide\b",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\?\W*$|^\W*(?:can|could|would|will|do|does|did|is|are|should|may)\s+(?:you|I|we)\b|^\W*(?:please|tell|show|give|write|help|explain|translate|"
    r"make|create|summari[sz]e|find|generate|list|draft)\b(?!\s+(?:remember|note|call))",
    re.IGNORECASE,
)


def extract(text: str) -> list[Candidate]:
    """Return what a user said about themselves in one message, in the order in which it was said."""
    said = [part.strip().lstrip("-*•> \t") for part in sentences(_without_code(text))]
    asked_for = _asked_for(said)
    candidates = [_candidate(sentence, at in asked_for) for at, sentence in enumerate(said)]
    return [candidate for candidate in candidates if candidate is not None]


def _without_code(text: str) -> str:
    return re.sub(r"```.*?(?:```|\Z)", "\n", text, flags=re.DOTALL)


def _asked_for(said: list[str]) -> set[int]:
    """Return the places of sentences that a neighbour, such as "Remember that.", asks to remember."""
    places = set()
    for at, sentence in enumerate(said):
        request = _BARE_REQUEST.match(sentence)
        if request is None:
            continue
        following = at + 1 < len(said) and (at == 0 or request["what"].lower() == "this")
        places.add(at + 1 if following else at - 1)
    return places


def _candidate(sentence: str, asked_for: bool) -> Candidate | None:
    if len(sentence) > CONTENT_CHARS_MAX or _BARE_REQUEST.match(sentence):
        return None
    said, requested = without_request(sentence)
    explicit = requested or asked_for
    if len(said) < CONTENT_CHARS_MIN or _ASKED.search(said):
        return None
    plain = KEPT.sub(lambda match: "…" * len(match.group()), said)
    if not explicit and (_SUPPOSED.search(plain) or vague_words(said) or temporary_words(said)):
        return None
    category, reasoning = _category(plain)
    if category is None and not explicit:
        return None
    if category is None:
        category, reasoning = Category.CONTEXT, "The user asked for this to be remembered"
    elif explicit:
        reasoning = f"The user asked for this to be remembered. {reasoning}"
    return Candidate(sentence, category, reasoning[:_REASONING_CHARS_MAX], explicit)


def _category(plain: str) -> tuple[Category | None, str]:
    for category, label, rule in _RULES:
        found = rule.search(plain)
        if found is None or _tells_the_past(found):
            continue
        words = re.sub(r"\s+", " ", found.group().strip(" ,;:-–—()"))
        return category, f'{label}: "{words}"'
    return None, ""


def _tells_the_past(found: re.Match[str]) -> bool:
    """Tell whether "I never …" speaks of what happened, not of a habit."""
    verb = found.groupdict().get("verb")
    return verb is not None and (verbs.is_past(verb.lower()) or verb.lower() in ("said", "knew", "mind"))
