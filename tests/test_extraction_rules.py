"""Rules that find facts about the user in messages."""

from __future__ import annotations

import pytest

from memory_service.deciders.base import Category
from memory_service.deciders.rules.extraction import extract

IDENTITY, PREFERENCE, RELATIONSHIP, PROJECT, CONTEXT = (
    Category.IDENTITY,
    Category.PREFERENCE,
    Category.RELATIONSHIP,
    Category.PROJECT,
    Category.CONTEXT,
)

FACTS = [
    ("My name is John", IDENTITY),
    ("I am a software engineer", IDENTITY),
    ("I'm an electrician from Leeds.", IDENTITY),
    ("I'm based in London", IDENTITY),
    ("I live in a small village near Bern.", IDENTITY),
    ("I'm 34 years old", IDENTITY),
    ("I work as a nurse in Cork", IDENTITY),
    ("I work at Siemens", IDENTITY),
    ("I was born in Lagos in 1988", IDENTITY),
    ("By the way, I'm originally from Chile.", IDENTITY),
    ("My birthday is on 3 May", IDENTITY),
    ("I have a PhD in chemistry.", IDENTITY),
    ("Call me Alex", IDENTITY),
    ("I prefer TypeScript", PREFERENCE),
    ("I prefer using TypeScript for all my projects", PREFERENCE),
    ("I really don't like coriander", PREFERENCE),
    ("I can't stand loud music", PREFERENCE),
    ("I'm allergic to peanuts", PREFERENCE),
    ("I always write tests first", PREFERENCE),
    ("I never eat breakfast", PREFERENCE),
    ("My favourite colour is green", PREFERENCE),
    ("In my free time I enjoy climbing", PREFERENCE),
    ("I'm a big fan of Studio Ghibli", PREFERENCE),
    ("I'd rather get short answers", PREFERENCE),
    ("I use vim for everything", PREFERENCE),
    ("No, I don't drink", PREFERENCE),
    ("I go running every morning", PREFERENCE),
    ("My wife is Jane", RELATIONSHIP),
    ("My brother lives in Toronto", RELATIONSHIP),
    ("I work with Sarah on the backend", RELATIONSHIP),
    ("My boss Karim is from Tunis", RELATIONSHIP),
    ("I have two kids", RELATIONSHIP),
    ("Priya Nair is my manager", RELATIONSHIP),
    ("I'm married to a dentist", RELATIONSHIP),
    ("We have two kids", RELATIONSHIP),
    ("My cat is called Tom", RELATIONSHIP),
    ("My mother-in-law is deaf", RELATIONSHIP),
    ("I'm building a chat app called blah.chat using Next.js 15", PROJECT),
    ("Save this: I'm building a SaaS product", PROJECT),
    ("We're migrating our servers to Hetzner", PROJECT),
    ("I've been working on a novel since March", PROJECT),
    ("I'm currently learning Rust", PROJECT),
    ("At work we use Go", PROJECT),
    ("My side project is called Lumen", PROJECT),
    ("I run a bakery in Ghent", PROJECT),
    ("I want to become a pilot", PROJECT),
    ("My goal is to run a marathon in 2027", PROJECT),
    ("Remember that I prefer dark mode", PREFERENCE),
    ("Don't forget that I'm vegetarian", PREFERENCE),
    ("Can you remember that my dog is Rex?", RELATIONSHIP),
    ("Remember that the deploy key is in the vault", CONTEXT),
    ("Keep in mind that the review is tomorrow", CONTEXT),
]

NO_FACTS = [
    "I might try Python someday",
    "Can you write a poem about the sea",
    "Can you write a poem about my wife?",
    "Please show me how I can use Docker",
    "Tell me what I need for a visa",
    "Do I live in the right tax class?",
    "What is the capital of Australia?",
    "Since I'm allergic to nuts, what can I eat?",
    "I am hungry",
    "I'm going to the shop now",
    "I'm a bit tired",
    "I am at the airport",
    "I love it!",
    "I like that idea.",
    "I love this answer",
    "I hate to ask",
    "I like the second option",
    "I love how fast it is",
    "I always get this error",
    "My mom called me",
    "I'm making dinner",
    "I'm writing a poem, can you help",
    "You are a pirate and I am a sailor",
    "I'd rather not say",
    "I'm working on it",
    "I'm writing an email to the landlord",
    "I'm working from home today",
    "I'm building a shelf this afternoon",
    "If I lived in Rome I would be happy",
    "Imagine I am a pirate captain",
    "I wish I had a dog",
    "I'd like to know more about Kafka",
    "Maybe I prefer tea, I guess",
    "I never said such a thing",
    "Water boils at 100 degrees",
    "Python is a programming language",
    "He said I am a terrible cook",
    '"I am a doctor" is a song',
    "My brother is late",
    "Thanks, that helps a lot",
    "I have a question",
    "I have an error in my code",
    "I think the second version is right",
    "Remember to buy milk",
    "Ich bin ein Berliner",
]


@pytest.mark.parametrize(("said", "category"), FACTS, ids=[said for said, _ in FACTS])
def test_a_fact_is_found_with_its_category(said: str, category: Category) -> None:
    [candidate] = extract(said)
    assert candidate.category is category
    assert candidate.quote == said
    assert 10 <= len(candidate.reasoning) <= 200


@pytest.mark.parametrize("said", NO_FACTS)
def test_what_is_no_lasting_fact_is_left_out(said: str) -> None:
    assert list(extract(said)) == []


def test_facts_come_sentence_by_sentence_in_order() -> None:
    candidates = extract(
        "Hi! My name is Dr. Ada King. I live in Bath, and I love walking.\n"
        "Can you recommend a route?\n- I'm allergic to bees\n- what about the weather?"
    )
    assert [candidate.quote for candidate in candidates] == [
        "My name is Dr. Ada King.",
        "I live in Bath, and I love walking.",
        "I'm allergic to bees",
    ]


def test_code_is_not_what_the_user_says() -> None:
    assert list(extract("Fix this:\n```\n# I live in Paris\nprint('My name is Bob')\n```\n")) == []


@pytest.mark.parametrize(
    "said", ["Please remember this. The gate code is 4711.", "The gate code is 4711. Please remember that."]
)
def test_a_request_counts_for_the_sentence_beside_it(said: str) -> None:
    [candidate] = extract(said)
    assert candidate.quote == "The gate code is 4711."
    assert candidate.category is Category.CONTEXT
    assert candidate.explicit


def test_a_request_to_remember_is_told() -> None:
    assert [candidate.explicit for candidate in extract("I prefer tea. Remember that I hate milk.")] == [
        False,
        True,
    ]


def test_contents_that_are_too_short_or_too_long_are_left_out() -> None:
    assert list(extract("I like Go")) == []
    longest = "I like " + "x" * 493
    assert len(longest) == 500
    assert [candidate.quote for candidate in extract(longest)] == [longest]
    assert list(extract(longest + "x")) == []
