"""The save command: recognizes it, chooses the message, saves it, and phrases the feedback."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_service.data_model import ChatMessage, Item, Json, Receipt, RequestKey, Role, TextPart
from memory_service.deciders.base import Begin
from memory_service.decisions import DecidedBy
from memory_service.domain.answers import live_versions
from memory_service.domain.checks import Checks
from memory_service.domain.conflicts import TRIES, pause_after
from memory_service.domain.documents import Document, DocumentDraft, Fragment, document_of
from memory_service.domain.embedding import Degradation
from memory_service.domain.item_writing import degraded_then
from memory_service.domain.knowledge import Knowledge, WrittenDocument
from memory_service.domain.retrieve_options import Selection
from memory_service.domain.splitting import Split
from memory_service.errors import AlreadyExists, InvalidArgument, MemoryServiceError, NotFound
from memory_service.runtime.caller import present_caller
from memory_service.runtime.clock import now_us
from memory_service.store import Store

COMMANDS = ("save_memory", "save this", "remember this")
RECENT_MESSAGES = 5
_RECENT_MESSAGES_MAX = 100
_SAVE_FAILED = "Sorry, I encountered an error while trying to save that information."


class SaveOutcome(enum.IntEnum):
    """The outcome for a message; the numbers equal the proto's."""

    NOT_A_COMMAND = 1
    SAVED = 2
    ALREADY_SAVED = 3
    NO_MESSAGE = 4
    INVALID_STATE = 5


_FEEDBACK = {
    SaveOutcome.NOT_A_COMMAND: "",
    SaveOutcome.SAVED: "I have saved that information.",
    SaveOutcome.ALREADY_SAVED: "I had already saved that information.",
    SaveOutcome.NO_MESSAGE: "No suitable message found to save.",
    SaveOutcome.INVALID_STATE: "Invalid state for save operation.",
}


@dataclass(slots=True)
class Spoken:
    """A message that may be a command, as in the proto."""

    session_id: str
    text: str
    message_id: str = ""
    agent_name: str = ""
    commands: Sequence[str] = ()
    max_recent_messages: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Json] | None = None
    max_characters: int | None = None
    overlap_characters: int | None = None


@dataclass(slots=True)
class Handled:
    """The outcome for a message, and what was saved."""

    outcome: SaveOutcome
    revision: int
    command: str = ""
    message: Item | None = None
    document: Document | None = None
    fragments: list[Fragment] = field(default_factory=list)
    degraded: Sequence[Degradation] = ()

    @property
    def feedback(self) -> str:
        """The feedback for the user."""
        return _FEEDBACK[self.outcome]


class SaveCommand:
    """Handles messages that may be save commands, each in one step."""

    def __init__(
        self,
        store: Store,
        knowledge: Knowledge,
        checks: Checks,
        begin: Begin,
        *,
        commands: Sequence[str] = COMMANDS,
        max_recent_messages: int = RECENT_MESSAGES,
    ) -> None:
        self._store = store
        self._knowledge = knowledge
        self._checks = checks
        self._begin = begin
        self._commands = tuple(commands)
        self._max_recent_messages = max_recent_messages

    async def handle(self, namespace: str, spoken: Spoken, request: RequestKey | None) -> Handled:
        """Save the agent's latest message, if the user says so.

        An error has the feedback for the user as "feedback" in its metadata.
        """
        try:
            self._check(namespace, spoken, request)
            split = self._knowledge.split.changed(spoken.max_characters, spoken.overlap_characters, "split")
            return await self._handle(namespace, spoken, split, request)
        except MemoryServiceError as error:
            error.metadata["feedback"] = _SAVE_FAILED
            raise

    def _check(self, namespace: str, spoken: Spoken, request: RequestKey | None) -> None:
        checks = self._checks
        checks.namespace(namespace)
        if request is not None:
            checks.request_id(request.id)
        if not spoken.session_id:
            raise InvalidArgument("session_id", "is required")
        checks.session_id(spoken.session_id)
        checks.text("text", spoken.text)
        checks.item_id(spoken.message_id, "message_id", required=False)
        checks.name("agent_name", spoken.agent_name, checks.limits.session_id_bytes_max, required=False)
        check_commands(spoken.commands, checks)
        recent = spoken.max_recent_messages
        if recent is not None and not 1 <= recent <= _RECENT_MESSAGES_MAX:
            raise InvalidArgument("max_recent_messages", f"must be 1 to {_RECENT_MESSAGES_MAX}")
        checks.labels("labels", spoken.labels)
        if spoken.metadata is not None:
            checks.metadata("metadata", spoken.metadata)

    async def _handle(
        self, namespace: str, spoken: Spoken, split: Split, request: RequestKey | None
    ) -> Handled:
        command = await self._recognised(namespace, spoken, spoken.text)
        receipt = await self._store.find_receipt(namespace, request) if request else None
        if receipt is not None:
            return await self._repeated(namespace, spoken, receipt)
        info = await self._store.namespace(namespace)
        if not command:
            return Handled(SaveOutcome.NOT_A_COMMAND, info.revision if info else 0)
        for attempt in range(TRIES):
            decided = await self._decide(namespace, spoken, command)
            if decided.outcome is not SaveOutcome.SAVED:
                return await self._without_writing(namespace, spoken, decided, request)
            try:
                return await self._save(namespace, spoken, split, decided, request)
            except AlreadyExists as error:
                # A concurrent request has saved the message in the meantime.
                last = error
            await pause_after(attempt)
        raise last

    async def _recognised(self, namespace: str, spoken: Spoken, text: str) -> str:
        """Return the command that a text is or contains; empty if there is none."""
        commands = spoken.commands or self._commands
        deciding = self._begin(DecidedBy.RULES, namespace)
        command, _ = await deciding.ask(lambda decider: decider.command(text, commands))
        return command

    async def _decide(self, namespace: str, spoken: Spoken, command: str) -> Handled:
        """Decide what to do now: SAVED means to save."""
        info = await self._store.namespace(namespace)
        revision = info.revision if info else 0
        message = await self._choose(namespace, spoken)
        if message is None:
            return Handled(SaveOutcome.NO_MESSAGE, revision, command)
        if await self._recognised(namespace, spoken, _text_of(message)):
            return Handled(SaveOutcome.INVALID_STATE, revision, command, message)
        try:
            document = await self._knowledge.document(namespace, document_id(message))
        except NotFound:
            return Handled(SaveOutcome.SAVED, revision, command, message)
        fragments = await self._knowledge.fragments(namespace, document.fragment_ids())
        return Handled(SaveOutcome.ALREADY_SAVED, revision, command, message, document, fragments)

    async def _choose(self, namespace: str, spoken: Spoken) -> Item | None:
        """Return the agent's latest message with a text, among the last of the conversation."""
        selection = Selection(session_id=spoken.session_id)
        wanted = selection.to_filter()
        count = spoken.max_recent_messages or self._max_recent_messages
        reading = await self._store.read(namespace)
        positions = await reading.scan(wanted, count, newest=True)
        for item in reversed(await reading.load_items(positions)):
            if item is None or item.id == spoken.message_id:
                continue
            if _is_of_agent(item, spoken.agent_name) and _text_of(item).strip():
                return item
        return None

    async def _without_writing(
        self, namespace: str, spoken: Spoken, decided: Handled, request: RequestKey | None
    ) -> Handled:
        """Remember a request that writes nothing: a repetition gets the same answer even after new
        messages.
        """
        if request is None:
            return decided
        receipt = Receipt(0)
        _note(receipt, decided)
        receipt = await self._store.record_request(namespace, receipt, request, by=present_caller())
        if receipt.replayed:
            # An equal request ran at the same time.
            return await self._repeated(namespace, spoken, receipt)
        decided.revision = receipt.revision
        return decided

    async def _save(
        self, namespace: str, spoken: Spoken, split: Split, decided: Handled, request: RequestKey | None
    ) -> Handled:
        assert decided.message is not None
        draft = _draft(spoken, decided.message)
        self._checks.size("message", len(draft.text.encode()), "document_bytes_max")
        pieces = await self._knowledge.pieces(draft, split, "message", "labels")
        written = await self._knowledge.write_new(
            namespace, draft, pieces, request, lambda added: _note(added.receipt, decided)
        )
        if written.receipt.replayed:
            return await self._repeated(namespace, spoken, written.receipt)
        return _saved(decided, written)

    async def _repeated(self, namespace: str, spoken: Spoken, receipt: Receipt) -> Handled:
        """Answer a repeated request as the first time, even if the agent has sent messages since.

        Content deleted since does not come back: the answer has only its ids and outcome.
        """
        outcome, command = _noted(receipt)
        handled = Handled(outcome, receipt.revision, command, degraded=degraded_then(receipt))
        found = await live_versions(self._store, namespace, receipt.seen)
        versions = [found.get(version) for version in receipt.seen]
        handled.message = versions[0] if versions else None
        if receipt.items:
            stamp = receipt.items[0]
            written = stamp.id, stamp.revision
            versions[1:] = [(await live_versions(self._store, namespace, [written])).get(written)]
        handled.document = document_of(versions[1], now_us()) if len(versions) > 1 else None
        if handled.document is not None:
            handled.fragments = await self._knowledge.fragments(namespace, handled.document.fragment_ids())
        elif receipt.items:
            draft = DocumentDraft("", session_id=spoken.session_id)
            handled.document = await self._knowledge.as_told(namespace, draft, receipt)
        return handled


def _note(receipt: Receipt, decided: Handled) -> None:
    """Store the decision and its message in a receipt."""
    receipt.note = [int(decided.outcome), decided.command]
    seen = [decided.message, decided.document.item if decided.document else None]
    receipt.seen = [(item.id, item.revision) for item in seen if item is not None]


def _noted(receipt: Receipt) -> tuple[SaveOutcome, str]:
    """Return the outcome and the command. Receipts of an earlier release have neither."""
    if not receipt.note:
        return SaveOutcome.SAVED if receipt.items else SaveOutcome.NO_MESSAGE, ""
    outcome, command = receipt.note
    return SaveOutcome(outcome), command


def check_commands(commands: Sequence[str], checks: Checks) -> None:
    """Check the commands of a request or of the configuration."""
    checks.size("commands", len(commands), "save_commands_max")
    for at, command in enumerate(commands):
        if not command.strip():
            raise InvalidArgument(f"commands[{at}]", "is empty")
        checks.size(f"commands[{at}]", len(command), "save_command_chars_max")


def document_id(message: Item) -> str:
    """Return the id of the document for a message: always the same, so that it is saved once."""
    return "saved-" + hashlib.blake2b(message.id.encode(), digest_size=16).hexdigest()


def _is_of_agent(item: Item, agent_name: str) -> bool:
    if not isinstance(item.content, ChatMessage):
        return False
    return item.content.name == agent_name if agent_name else item.content.role is Role.ASSISTANT


def _text_of(item: Item) -> str:
    """Return the text of a message, without its files and tool calls."""
    assert isinstance(item.content, ChatMessage)
    return "\n".join(part.text for part in item.content.parts if isinstance(part, TextPart))


def _draft(spoken: Spoken, message: Item) -> DocumentDraft:
    return DocumentDraft(
        _text_of(message),
        document_id(message),
        source_item_id=message.id,
        session_id=spoken.session_id,
        create_us=message.create_us,
        labels=spoken.labels,
        metadata=spoken.metadata,
    )


def _saved(decided: Handled, written: WrittenDocument) -> Handled:
    return Handled(
        SaveOutcome.SAVED, written.receipt.revision, decided.command, decided.message, written.document,
        written.fragments, written.degraded,
    )  # fmt: skip
