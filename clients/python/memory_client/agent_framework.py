"""Sessions and memory of Microsoft Agent Framework on a memory server. Needs the extra `agent-framework`.

memory = MemoryServiceContextProvider("127.0.0.1:50051", namespace="ada")
agent = Agent(client=client, context_providers=[memory])
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent_framework import (
    AgentSession,
    Content,
    HistoryProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from memory_client._adapters import AsyncAdapter, completed, label_of
from memory_client._verbatim import attached, bounded, clean, name_of, shortened, verbatim_json, verbatim_of
from memory_client.aio import AsyncMemoryClient
from memory_client.messages import BinaryPart, ChatMessage, Part, Role, ToolCall, ToolCallResult
from memory_client.models import ItemKind, MemoryItem, Result

SESSION_LABEL = "agent_framework_session"
"""The label of every message of a session."""
MESSAGE_KEY = "agent_framework_message"
"""Metadata key of the JSON of a message."""
FILES_TYPE = "application/vnd.agent-framework.message+json"
"""MIME type of files with it, if it is larger than 15 KiB."""

_BATCH = 1000
"""Messages per call: the most that the server takes in one."""
_RECALLED = (ItemKind.PLAIN, ItemKind.MESSAGE, ItemKind.RESPONSE, ItemKind.USER_MEMORY)
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}


class MemoryServiceContextProvider(AsyncAdapter, HistoryProvider):
    """A context provider for `Agent(context_providers=[...])`.

    Before a run it adds the messages of the session, and what the namespace has from other sessions, facts
    included, that is relevant to the input. After a run it stores the new messages, on disk when the run
    ends. Messages are kept verbatim. Each is also an item of the namespace with the `session_id`, which
    `retrieve` finds. Many processes may use one session. Errors are the client's.
    """

    DEFAULT_SOURCE_ID = "memory_service"
    DEFAULT_CONTEXT_PROMPT = "## Memories\nConsider the following memories when answering user questions:"

    def __init__(
        self,
        client: AsyncMemoryClient | str,
        *,
        namespace: str | None = None,
        source_id: str = DEFAULT_SOURCE_ID,
        context_prompt: str = DEFAULT_CONTEXT_PROMPT,
        recall_limit: int = 5,
        min_relevance: float = 0.5,
        max_tokens: int | None = 1000,
        skip_excluded: bool = False,
        **options: Any,
    ) -> None:
        """Make a provider.

        Args:
            client: A client, or the address of a server.
            namespace: The namespace, such as the user. None: the client's, or "default" for an address.
            source_id: The framework's name for the provider.
            context_prompt: The text above what is recalled.
            recall_limit: Maximum number of items to recall from other sessions. 0: none.
            min_relevance: How likely they must be to help with the input, 0 to 1. 0.5: they probably do.
            max_tokens: Maximum estimated tokens of them together. None: no limit.
            skip_excluded: Leave out messages that the framework's compaction has excluded.
            options: Those of the framework's `HistoryProvider`, such as `store_outputs`.
        """
        HistoryProvider.__init__(self, source_id, **options)
        self._connect(client, namespace)
        self.context_prompt = context_prompt
        self.recall_limit = recall_limit
        self.min_relevance = min_relevance
        self.max_tokens = max_tokens
        self.skip_excluded = skip_excluded

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add the session's messages, then what is recalled, as one message of the user."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        text = "\n".join(message.text for message in context.input_messages if message.text)
        if self.recall_limit <= 0 or not text.strip():
            return
        found = await self._recalled(text, context.session_id)
        if found:
            lines = "\n".join(f"- {_line(result)}" for result in found)
            recalled = Message(role="user", contents=[f"{self.context_prompt}\n{lines}"])
            origins = sorted({result.item.session_id for result in found if result.item.session_id})
            context.extend_messages(self, [recalled], origin_session_ids=origins or None)

    async def _recalled(self, text: str, session_id: str | None) -> list[Result]:
        own = json.dumps(_label(session_id), ensure_ascii=False)
        return await self._client.retrieve(
            clean(text)[-8000:],  # The end of a long input has what is asked for.
            limit=self.recall_limit,
            kinds=_RECALLED,
            filter=f"NOT labels.{SESSION_LABEL} = {own}",
            min_relevance=self.min_relevance,
            max_tokens=self.max_tokens,
        )

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session, the oldest first."""
        messages = await self._newest(session_id, -1)
        if self.skip_excluded:
            messages = [each for each in messages if not each.additional_properties.get("_excluded")]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages, without those at the beginning that are stored already.

        Up to 1000 messages are added atomically. A call that is cancelled is completed first.
        """
        if messages:
            await completed(self._saved(session_id, list(messages)))

    async def _saved(self, session_id: str | None, messages: list[Message]) -> None:
        new = _without_known(await self._newest(session_id, len(messages) + 1), messages)
        items = [_item(message, session_id) for message in new]
        for at in range(0, len(items), _BATCH):
            await self._client.batch_add(items[at : at + _BATCH])

    async def _newest(self, session_id: str | None, limit: int) -> list[Message]:
        found = await self._client.retrieve(limit=limit, labels={SESSION_LABEL: _label(session_id)})
        values = (verbatim_of(result.item, MESSAGE_KEY, FILES_TYPE) for result in found)
        return [Message.from_dict(value) for value in values if value is not None]


def _label(session_id: str | None) -> str:
    return label_of(session_id or "default")


def _line(result: Result) -> str:
    text = " ".join(result.text.split())
    return f"{result.item.speaker}: {text}" if result.item.speaker else text


def _without_known(known: Sequence[Message], messages: list[Message]) -> list[Message]:
    """Return the messages after those that are stored already, as the framework's own providers find them.

    These are all that is stored, anywhere in the messages, or else the longest beginning of the messages that
    is the end of what is stored. A single message of the user without an id may be said again.

    Args:
        known: The newest messages that are stored; all if they are not more than `messages`.
        messages: The messages to store.
    """
    seen, given = [_identity(each) for each in known], [_identity(each) for each in messages]
    is_repeatable = bool(known) and known[-1].role == "user" and not known[-1].message_id
    for at in range(len(given) - len(seen) + 1):
        if given[at : at + len(seen)] == seen:
            if at == 0 and len(seen) == 1 and is_repeatable:
                break
            return messages[at + len(seen) :]
    for count in range(min(len(seen), len(given)), 0, -1):
        if seen[-count:] == given[:count] and not (count == 1 and is_repeatable):
            return messages[count:]
    return messages


def _identity(message: Message) -> Any:
    """Return what makes two messages the same: their id, else what they say."""
    if message.message_id:
        return message.message_id
    return message.role, [content.to_dict() for content in message.contents]


def _item(message: Message, session_id: str | None) -> MemoryItem:
    role = _ROLES.get(str(message.role), Role.ASSISTANT)
    parts = tuple(_parts(message.contents))
    readable = bounded(
        ChatMessage(role, parts, name_of(message.author_name) or None, name_of(message.message_id))
    )
    kept, metadata = attached(readable, verbatim_json(message.to_dict(), "messages"), MESSAGE_KEY, FILES_TYPE)
    return MemoryItem(
        content=kept,
        session_id=session_id or "default",
        labels={SESSION_LABEL: _label(session_id)},
        metadata=metadata,
        index=None if readable.text else "",
    )


def _parts(contents: Sequence[Content]) -> Iterator[Part]:
    for content in contents:
        if content.type in ("text", "text_reasoning") and content.text:
            yield clean(content.text)
        elif content.type == "function_call":
            arguments = content.parse_arguments()
            yield ToolCall(name_of(content.name), shortened(arguments or {}), name_of(content.call_id))
        elif content.type == "function_result":
            yield ToolCallResult("", shortened(_json(content.result)), name_of(content.call_id))
        elif content.type in ("data", "uri"):
            yield BinaryPart(mime_type=name_of(content.media_type), content_length=-1)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))
