"""A proxy in front of PostgreSQL that cuts a connection at the COMMIT of a chosen transaction, or hangs.

It parses only as much of the protocol as that needs: message boundaries and executed statements.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field

from faults.cutting_proxy import CuttingProxy, reset

_COMMITTED = b"C" + struct.pack(">i", 11) + b"COMMIT\0"
_BOUND, _PARSED, _QUERY = b"B", b"P", b"Q"


@dataclass
class Statements:
    """The messages of a client on one connection."""

    _started: bool = False
    _rest: bytes = b""
    _prepared: dict[bytes, bytes] = field(default_factory=dict)

    def split(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the complete messages, each with the statement that it executes, if any."""
        self._rest += data
        found = []
        while True:
            begin = 1 if self._started else 0
            if len(self._rest) < begin + 4:
                return found
            length = begin + struct.unpack_from(">i", self._rest, begin)[0]
            if len(self._rest) < length:
                return found
            message, self._rest = self._rest[:length], self._rest[length:]
            found.append((message, self._statement(message) if self._started else b""))
            self._started = True

    def _statement(self, message: bytes) -> bytes:
        kind, body = message[:1], message[5:]
        if kind == _QUERY:
            return body.rstrip(b"\0")
        if kind == _PARSED:
            name, statement, _ = body.split(b"\0", 2)
            self._prepared[name] = statement
        elif kind == _BOUND:
            name = body.split(b"\0", 2)[1]
            return self._prepared.get(name, b"")
        return b""


@dataclass(eq=False)
class _Connection:
    """A connection through the proxy, and its fate."""

    to_client: asyncio.StreamWriter
    to_server: asyncio.StreamWriter
    statements: Statements = field(default_factory=Statements)
    marked: bool = False
    """Whether the transaction is the chosen one."""
    cut_at_answer: bool = False
    hangs: bool = False

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        # A hanging connection is still read, because a network that drops packets would have room for more.
        if not self.hangs:
            writer.write(data)
            await writer.drain()

    def cut(self) -> None:
        for writer in (self.to_client, self.to_server):
            reset(writer)


class PostgresProxy(CuttingProxy):
    """Use it as a context manager; `dsn` is the connection string through it."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self._connections: set[_Connection] = set()
        self._chosen, self._before, self._hangs = b"", False, False
        self._away = self._silent = False
        self.met = 0
        """How many connections were cut, or hung, at a COMMIT."""

    @property
    def dsn(self) -> str:
        """The connection string through the proxy, without encryption, which it could not read."""
        host, port = self.address.split(":")
        plain = "sslmode=disable gssencmode=disable connect_timeout=2"
        return f"host={host} port={port} user=postgres dbname=postgres {plain}"

    def cut_commit(self, chosen: str, *, before: bool, hang: bool = False) -> None:
        """Cut the connection at the next COMMIT of a transaction in which this text was sent, or let it hang.

        That happens before the COMMIT is forwarded, or when its response arrives.
        """
        self._before, self._hangs, self._chosen = before, hang, chosen.encode()

    def hang(self, *, silent: bool = False) -> None:
        """Pass nothing on existing connections and, if `silent`, on new ones, without closing any."""

        async def hang() -> None:
            self._silent = silent
            for connection in self._connections:
                connection.hangs = True

        self._in_loop(hang)

    def leave(self) -> None:
        """Cut all connections, and accept no new ones until `come_back`."""
        self._away = True
        self.cut()

    def come_back(self) -> None:
        """Accept connections, and pass everything on new ones."""
        self._away = self._silent = False

    def _cut(self) -> None:
        for connection in list(self._connections):
            connection.cut()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._away:
            reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = None
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
            connection = _Connection(writer, to_server, hangs=self._silent)
            self._connections.add(connection)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask(connection, reader))
                group.create_task(self._answer(connection, from_server))
        except* (OSError, asyncio.CancelledError):
            pass  # Cut by one of its ends, or by the test.
        finally:
            writer.transport.abort()
            if connection is not None:
                connection.to_server.transport.abort()
                self._connections.discard(connection)
            self._tasks.discard(task)

    async def _ask(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            for message, statement in connection.statements.split(data):
                if self._meets(connection, message, statement):
                    self._chosen = b""
                    if self._before:
                        self._end(connection)
                    else:
                        connection.cut_at_answer = True
                await connection.send(connection.to_server, message)
        raise ConnectionResetError

    def _end(self, connection: _Connection) -> None:
        self.met += 1
        connection.hangs = True
        if not self._hangs:
            connection.cut()

    def _meets(self, connection: _Connection, message: bytes, statement: bytes) -> bool:
        if statement.startswith(b"BEGIN"):
            connection.marked = False
        if self._chosen and self._chosen in message:
            connection.marked = True
        return bool(self._chosen) and connection.marked and statement == b"COMMIT"

    async def _answer(self, connection: _Connection, reader: asyncio.StreamReader) -> None:
        seen = b""
        while data := await reader.read(65536):
            seen = seen[-len(_COMMITTED) :] + data
            if connection.cut_at_answer and _COMMITTED in seen:
                self._end(connection)
            await connection.send(connection.to_client, data)
        raise ConnectionResetError
