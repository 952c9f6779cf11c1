"""Decides by rules whether a tool's result is worth keeping beyond the session.

Lasting data is kept: people, preferences, settings, profiles, patterns, and what the goal asks to remember.
Data that answers one question is not: times, numbers, the weather, the hits of a search.
"""

from __future__ import annotations

import itertools
import re

from memory_service.data_model import Json
from memory_service.deciders.base import Keeping
from memory_service.deciders.rules.relevance import CAMEL_BOUNDARY

_LASTING = frozenset(
    """
    account accounts address addresses allergies allergy athletes birthday birthdays bookmarks colleagues
    config configuration contact contacts customers diet employees family favorite favorites favourite
    favourites followers following friend friends givers goals habit habits household identity interests
    kudos language list members membership memberships participants pattern patterns people person
    persons plan preference preferences profile profiles roster routine routines schedule schema setting
    settings skills subscribers subscription subscriptions team teammates timezone users watchlist wishlist
    """.split()  # noqa: SIM905 - so many quoted words read no better
)
_PASSING = frozenset(
    """
    balance calculate calculator calculation clock compute conversion convert count current date echo
    estimate exchange forecast headlines health latest live log logs math news now ping price prices quote
    quotes random rate rates result results search status stock sum temperature time timestamp today total
    traffic translate translation uptime validate weather
    """.split()  # noqa: SIM905
)
# Names of fields that hold secrets, without separators: "next_page_token" is not one.
_SECRET = frozenset(
    """
    accesstoken apikey apitoken authtoken clientsecret credential credentials idtoken passphrase passwd
    password privatekey refreshtoken secret secretkey token
    """.split()  # noqa: SIM905
)
# Fields that show that an object is a person.
_NAMES_OF_PEOPLE = frozenset(
    """
    athlete athlete_id email firstname first_name full_name fullname givenname given_name last_name
    lastname login nickname person user_id user_name userid username
    """.split()  # noqa: SIM905
)
_VERBS = frozenset(
    """
    call check compute create download fetch find get list load lookup make obtain query read receive
    retrieve return run scan search show tool
    """.split()  # noqa: SIM905
)
_FILLERS = frozenset(
    """
    a about all an and any are at by do every everybody find for from get give goal have i in into is it
    last latest list me memory my of on our recent save show some tell that the their them these this those
    to today us want was we week what when where which who whom whose with yesterday you your
    """.split()  # noqa: SIM905
)
# "save kudos givers to memory", "remember my shoe size", "store the list of members for later".
_ASKED = re.compile(
    r"\b(?:save|store|remember|memori[sz]e|keep|persist|note down)\s+(?P<what>.+?)"
    r"(?:\s+(?:to|in|into|for)\s+(?:the\s+|my\s+|your\s+)?(?:memory|later|future|next)\b.*)?(?:[.!?;]|,\s|$)",
    re.IGNORECASE,
)
_NOT_ASKED = re.compile(
    r"\b(?:do not|don't|dont|never|no need to|without)\s+(?:\w+\s+)?(?:save|saving|store|storing|remember|"
    r"keep|persist)\w*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_KEY_WORDS_MAX = 5
_KEY_CHARS_MAX = 64
_DESCRIPTION_CHARS_MAX = 300
_GOAL_CHARS_SEEN = 2000
_ITEMS_SEEN, _NAMES_SEEN, _DEPTH_SEEN = 20, 200, 4


def evaluate(tool_name: str, result: Json, goal: str) -> Keeping:
    """Decide on a result by the tool's name, the goal and the result's shape."""
    goal = " ".join(goal.split())[:_GOAL_CHARS_SEEN]
    save, reason = _decide(tool_name, result, goal)
    return Keeping(save, reason, key_for(tool_name, goal), description_for(tool_name, goal))


def _decide(tool_name: str, result: Json, goal: str) -> tuple[bool, str]:
    if result is None or result == "" or result == [] or result == {}:
        return False, "the result is empty"
    if _NOT_ASKED.search(goal):
        return False, "the goal asks not to save it"
    if _SECRET & {"".join(_words(name)) for name in _names(result)}:
        return False, "the result holds a password, a token or another secret"
    if _asks_for(goal, tool_name, result):
        return True, "the goal asks to remember it"
    words, where = set(_words(tool_name)), "the tool's name"
    if words <= _VERBS:
        # The name of a tool such as "fetch" says nothing; the goal does.
        words, where = set(_words(goal)), "the goal"
    if passing := words & _PASSING:
        return False, f'"{min(passing)}" in {where} suggests data for one question'
    if lasting := (words - _VERBS) & _LASTING:
        return True, f'"{min(lasting)}" in {where} suggests data that is useful across sessions'
    return _by_shape(result)


def _asks_for(goal: str, tool_name: str, result: Json) -> bool:
    """Return whether the goal asks to remember this result, and not that of another tool on the way."""
    asked = _ASKED.search(goal)
    if asked is None:
        return False
    wanted = {word.rstrip("s") for word in _telling(asked["what"])}
    tool = _words(tool_name)
    if not wanted or _VERBS.issuperset(tool):
        return _PASSING.isdisjoint(tool)
    return not wanted.isdisjoint(word.rstrip("s") for word in (*tool, *_fields(result)))


def _by_shape(result: Json) -> tuple[bool, str]:
    if not isinstance(result, list | dict):
        return False, "the result is a single value, an answer to one question"
    if _lists_people(result):
        return True, "the result is a list of people, which is useful across sessions"
    if lasting := _fields(result) & _LASTING:
        return True, f'the result has a field "{min(lasting)}", which is useful across sessions'
    return False, "nothing shows that the result is useful beyond this question"


def _lists_people(result: Json) -> bool:
    """Return whether the result, or one of its fields, is a list of objects with names of people."""
    lists = result.values() if isinstance(result, dict) else (result,)
    return any(
        isinstance(found, list)
        and bool(found)
        and all(
            isinstance(one, dict) and _NAMES_OF_PEOPLE & {name.lower() for name in one}
            for one in found[:_ITEMS_SEEN]
        )
        for found in lists
    )


def _fields(result: Json) -> set[str]:
    """Return the words in the names of a result's fields."""
    return {word for name in _names(result) for word in _words(name)}


def _names(result: Json, depth: int = _DEPTH_SEEN) -> set[str]:
    """Return the names of a result's fields, and of those of the objects in it."""
    if not depth or not isinstance(result, list | dict):
        return set()
    seen = list(itertools.islice(result.values() if isinstance(result, dict) else result, _ITEMS_SEEN))
    names = set(itertools.islice(result, _NAMES_SEEN)) if isinstance(result, dict) else set()
    return names.union(*(_names(one, depth - 1) for one in seen))


def key_for(tool_name: str, goal: str) -> str:
    """Return a key in snake_case: the goal's name for the thing to remember, else what the tool does."""
    tool = [word for word in _words(tool_name) if word not in _VERBS]
    if (asked := _ASKED.search(goal)) and (named := _telling(asked["what"])):
        known = {word.rstrip("s") for word in tool}
        if not tool or not known.isdisjoint(word.rstrip("s") for word in named):
            return _key(named)
    if len(tool) > 1:
        return _key(tool)
    rest = [word for word in _telling(goal) if word not in tool and word not in _VERBS]
    return _key([*tool, *rest[:2]] or _words(tool_name) or ["result"])


def _telling(text: str) -> list[str]:
    return [word for word in _words(text.replace("'s ", " ")) if word not in _FILLERS]


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case; parts of names count as words."""
    return [word.lower() for word in _WORD.findall(CAMEL_BOUNDARY.sub(" ", text))]


def _key(words: list[str]) -> str:
    # Cut between words, except for a first word that is too long by itself.
    key = ""
    for word in words[:_KEY_WORDS_MAX]:
        if key and len(key) + 1 + len(word) > _KEY_CHARS_MAX:
            break
        key = f"{key}_{word}" if key else word[:_KEY_CHARS_MAX]
    return key


def description_for(tool_name: str, goal: str) -> str:
    """Return a description of the value, in words that a later goal may share."""
    text = f"{tool_name}: {goal}" if goal else tool_name
    return text if len(text) <= _DESCRIPTION_CHARS_MAX else text[: _DESCRIPTION_CHARS_MAX - 3] + "..."
