"""Patterns of sentences in which users say something about themselves."""

from __future__ import annotations

from memory_service.deciders.base import Category
from memory_service.deciders.rules.kinship import RELATION
from memory_service.deciders.rules.word_lists import phrases

_START = r"""
(?:^|[,;:()]\s*|\s[-–—]\s
|\b(?:and|but|because|since|so|as|also|btw|by the way|well|actually
|hi|hello|hey|though|however|yes|no|yeah|oh)[,!]?\s+
|^(?:at|in|on|for|as|since|these|most|every|nowadays|outside|besides|apart|over)\b[^,.]{0,40}?[,\s]\s*)
"""
_ADVERBS = r"(?:(?:also|just|still|now|both|even|very much|(?!only)\w{3,}ly) )*"
_I = rf"{_START}I {_ADVERBS}"
_AM = rf"{_START}I(?:['’]?m| am) {_ADVERBS}"
_ARE_DOING = rf"""
{_START}(?:I(?:['’]?m| am|['’]?ve been| have been)|we(?:['’]re| are|['’]ve been| have been)) {_ADVERBS}
"""
_MY = rf"{_START}(?:my|our) "
_NAME = r"(?-i:[A-Z])[\w'’-]+"
_PERSON = rf"(?:[a-z]+ ){{0,2}}(?:{RELATION})"
_COUNT = r"(?:an?|one|two|three|four|five|six|seven|\d+)"
_LASTING = r"""
(?!\s*(?:$|[,.!;]|(?:it|that|this|these|those|you|your|how|what|both|the way you)\b
|the (?:first|second|third|last|latest|latter|former|other|new|one|idea)\b
|to (?:say|ask|bother|think|admit)\b|not (?:say|tell|answer|share|now)\b))
"""

_RELATIONSHIP = [
    rf"""
    {_MY}{_PERSON}(?:['’]s)? (?:{_NAME} )?(?:(?:name|works?|lives?|loves?|likes?|hates|prefers|has|have
    |studies|plays|teaches|speaks|runs|owns|collects|and I)\b|(?:named|called) (?-i:[A-Z]))
    """,
    rf"""
    {_MY}{_PERSON},? (?:{_NAME},? )?(?:is|are|was|were) (?:{_COUNT}\b|(?-i:[A-Z])|(?:the|my|our|from|named
    |called|allergic|vegetarian|vegan|deaf|blind|diabetic|autistic|retired|born)\b)
    """,
    rf"{_START}(?:I|we)(?: {_ADVERBS}(?:have|have got)|['’]ve got) {_COUNT} {_PERSON}\b",
    rf"{_MY}{_PERSON} (?:{_NAME} )?is (?:on the \w+ team|in charge of|responsible for)\b",
    rf"""
    {_I}(?:work|collaborate|live|am working|share an? \w+) (?:closely )?with (?:(?-i:[A-Z])\w+|my {_PERSON})
    """,
    rf"{_I}(?:report to|mentor|manage) (?:(?-i:[A-Z])\w+|{_COUNT} \w+)",
    rf"{_AM}(?:married to|engaged to|dating|related to|(?:the )?(?:mother|father|mom|dad|parent) of)\b",
    rf"^{_NAME}(?: {_NAME})? is (?:my|our) {_PERSON}\b",
]
_PREFERENCE = [
    rf"""
    {_I}(?:(?:always|never|generally|usually|do) )?
    (?:like|love|hate|dislike|prefer|enjoy|adore|detest|loathe|despise|favou?r|avoid)\b{_LASTING}
    """,
    rf"""
    {_I}(?:(?:can['’]?t|cannot) (?:stand|eat)
    |(?:don['’]?t|do not) (?:really )?(?:like|eat|drink|enjoy|use|want you to))\b{_LASTING}
    """,
    rf"""
    {_AM}(?:allergic to|intolerant|(?:not )?a (?:\w+ )?fan of|fond of|into|keen on|interested in
    |passionate about|(?:a )?vegetarian|(?:a )?vegan|\w+-intolerant)\b
    """,
    rf"{_START}I(?:['’]d| would) (?:always |much )?(?:rather|prefer)\b{_LASTING}",
    rf"{_MY}(?:\w+ )?(?:favou?rites?|preferred|go-to)\b",
    rf"{_I}(?:tend to|only (?:use|drink|eat|buy|wear|read|watch|listen))\b",
    rf"{_I}(?:always|never) (?P<verb>[a-z'’]+)\b(?! (?:it|this|that|these|such)\b)",
    rf"{_I}(?:don['’]?t|do not) (?:drink|smoke)\b(?! (?:it|this|that)\b)",
    rf"{_I}(?:usually |always |only )?use\b(?! (?:the|a|an|my)\b){_LASTING}",
    rf"{_I}[a-z]+ [^,.;]{{0,60}}?\bevery (?:day|morning|evening|night|week|weekend|month|year|\w+day)\b",
]
_PROJECT = [
    rf"""
    {_ARE_DOING}(?:building|developing|working on|writing|creating|designing|launching|founding|starting
    |researching|renovating|organi[sz]ing|migrating|rewriting|porting|prototyping|learning(?: to)?
    |studying for|training for|preparing for|planning|saving (?:up )?for|making(?= (?:an?|the|my)\b))
    \s+(?!(?:it|this|that|you|to|something)\b|an? (?:\w+ )?(?:e-?mail|message|mail|reply|text)\b)\w
    """,
    rf"""
    {_I}(?:run|own|founded|co-founded|maintain|started|lead) (?:an?|the|my) (?:\w+ ){{0,3}}
    (?:company|startup|business|blog|podcast|project|library|shop|channel|team|agency|website|bakery
    |restaurant|caf[eé]|store|studio|farm|firm|newsletter|clinic|school|gym)\b
    """,
    rf"{_I}(?:co-)?founded (?-i:[A-Z])",
    rf"{_MY}(?:\w+(?:-term)? )?(?:goal|dream|ambition) is\b",
    rf"{_I}(?:want to (?:become|be) an?|(?:plan|intend|aim|hope) to) \w",
    rf"""
    {_MY}(?:\w+ ){{0,2}}(?:project|startup|start-up|app|thesis|dissertation|book|novel|blog|podcast|website
    |product|codebase|stack|backend|frontend|repo|repository|company|team)
    \s+(?:is (?:an?|about|called|named|written|built)|uses|runs|deals|targets|has)\b
    """,
    rf"{_START}we {_ADVERBS}(?:use|deploy|host|run|ship|release|maintain) (?!it\b|this\b|that\b)\w",
]
_IDENTITY = [
    rf"{_MY}(?:full |first |last |real |nick)?name(?:['’]s| is)\b",
    r"^(?:please |just |you can )*call me (?-i:[A-Z])\w+[.!]?$",
    rf"""
    {_AM}(?:called|known as|from|originally from|based in|living in|employed|retired|married|single|divorced
    |engaged|left-handed|deaf|blind|colou?r[-\s]?blind|diabetic|autistic|dyslexic|bilingual|self-employed
    |unemployed)\b
    """,
    rf"""
    {_AM}(?:an?|the) (?!(?:bit|little|few|lot|minute|mess|moment|one|couple|tad|sure|while|same|person who
    |only one|hour)\b)\w
    """,
    rf"{_AM}not an? (?!bit|fan)\w",
    rf"{_AM}\d{{1,3}}(?: years? old\b|\s*(?:$|[.,!]|and\b))",
    rf"{_AM}(?-i:[A-Z][a-z]+)\b",
    rf"{_I}(?:live|reside) (?:in|near|at|on|with|alone)\b",
    rf"""
    {_I}(?:(?:come from|grew up|was born|was raised|turned \d+|graduated|studied|majored
    |moved (?:to|from)|study)\b|(?:speak|go by) (?-i:[A-Z]))
    """,
    rf"{_I}(?:work|worked|freelance|teach|used to work) (?:as|at|for|in)\b(?! (?:it|this|that)\b)",
    rf"{_I}work (?:nights|shifts|freelance|remotely|part-time|full-time|from home)\b",
    r"^(?:people|friends|everyone|everybody|my (?:friends|family)) calls? me (?-i:[A-Z])",
    rf"{_I}have (?:adhd|autism|diabetes|asthma|epilepsy|dyslexia|migraines|arthritis|c(?:o?e)liac disease)\b",
    rf"{_I}(?:was|used to be) an? (?!bit|little|few)\w+",
    rf"{_I}(?:have|hold) an? (?:\w+['’]?s? )?(?:degree|phd|master|bachelor|diploma)\b",
    rf"""
    {_MY}(?:\w+ )?(?:job|profession|occupation|birthday|age|hometown|nationality|pronouns|native language
    |mother tongue|e-?mail(?: address)?|phone number|address|time\s?zone|employer)(?:['’]s| is| are)\b
    """,
]

RULES = [
    (category, label, phrases(pattern))
    for category, label, patterns in (
        (Category.RELATIONSHIP, "The user mentions a person in their life", _RELATIONSHIP),
        (Category.PREFERENCE, "The user states a preference", _PREFERENCE),
        (Category.PROJECT, "The user says what they work on", _PROJECT),
        (Category.IDENTITY, "The user says who they are", _IDENTITY),
    )
    for pattern in patterns
]
"""The category of a sentence, a description, and a pattern; the first match counts."""
