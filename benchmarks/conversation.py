"""Show what the server finds: import one LoCoMo conversation and ask its questions.

Run as `python -m benchmarks.conversation LOCOMO_FILE --address HOST:PORT`. A `*` marks a turn that answers
the question.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import locomo
from benchmarks.client import Client
from benchmarks.locomo import CATEGORIES, Conversation, Question
from memory_service.v1 import memory_pb2


async def show(conversation: Conversation, questions: Sequence[Question], address: str, limit: int) -> None:
    """Write the conversation, ask the questions and print the results."""
    async with Client(address) as client:
        written = await locomo.write(client, conversation)
        print(
            f"{conversation.name} in namespace {conversation.namespace}: {len(conversation.turns)} turns, "
            f"{written.imported_count} written, {written.skipped_count} there already\n"
        )
        answers = await locomo.ask(client, conversation, questions, limit=limit)
    shares = [_print(question, answer) for question, answer in zip(questions, answers, strict=True)]
    print(
        f"{len(shares)} questions; at least one gold turn in the first {limit} results for "
        f"{sum(share > 0 for share in shares)}; evidence recall@{limit} {sum(shares) / len(shares):.3f}"
    )


def _print(question: Question, answer: memory_pb2.RetrieveResponse) -> float:
    """Print a question with its results; return the share of its gold turns that was found."""
    found = [result.item.id for result in answer.results]
    print(f"Q  {question.text}  [{CATEGORIES.get(question.category, question.category)}]")
    print(f"   gold      {' '.join(sorted(question.gold))}")
    print(f"   returned  {' '.join(turn + '*' * (turn in question.gold) for turn in found)}")
    for result in answer.results:
        if result.item.id in question.gold:
            message = result.item.chat_message
            print(f"   * {result.item.id} {message.name}: {message.parts[0].text}")
    print()
    return len(question.gold.intersection(found)) / len(question.gold)


def main() -> None:
    """Parse the command line and show one conversation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo_file", type=Path, help="the LoCoMo JSON")
    parser.add_argument("--conversation", type=int, default=1, metavar="N", help="which one, from 1 (1)")
    parser.add_argument("--address", default="127.0.0.1:50051", help="a server that runs (%(default)s)")
    parser.add_argument("--limit", type=int, default=10, help="results per question (%(default)s)")
    parser.add_argument("--questions", type=int, default=None, help="ask only the first ones")
    args = parser.parse_args()
    conversations = locomo.read(args.locomo_file)
    if not 1 <= args.conversation <= len(conversations):
        parser.error(f"--conversation is 1 to {len(conversations)}")
    chosen = conversations[args.conversation - 1]
    uvloop.run(show(chosen, chosen.questions[: args.questions], args.address, args.limit))


if __name__ == "__main__":
    main()
