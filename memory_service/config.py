"""Every setting of a server, in one value that is validated before anything starts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from memory_service.indexes.settings import IndexSettings
from memory_service.limits import Limits

AUTHENTICATIONS = ("keys", "jwt", "mtls")
_LOOPBACK_URL = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/|$)")
_SCHEMA = re.compile("[a-z][a-z0-9_]{0,62}")
JWT_ALGORITHMS = ("EdDSA", "ES256", "RS256")


class BadConfig(ValueError):
    """Raised for invalid settings; the message lists every problem."""


def is_socket_file(address: str) -> bool:
    """Whether an address names a socket file or an abstract socket rather than a port."""
    return address.startswith(("unix:", "unix-abstract:"))


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return is_socket_file(text) or (bool(host) and port.isdigit() and int(port) <= 65535)


@dataclass(frozen=True)
class Config:
    """The settings of a server. They hold no secrets: `openai` reads its key itself."""

    address: str = "127.0.0.1:50051"
    """Host and port to listen on, or "unix:PATH"; port 0 takes a free one."""
    server_name: str = ""
    """The server's name in responses and in the audit log; empty: host name and port."""
    health_address: str = ""
    """Address that serves health checks only, without TLS or credentials. Empty: none."""
    tls_certificate: Path | None = None
    """File of the server's certificate and its intermediates, as PEM. None: no TLS."""
    tls_key: Path | None = None
    """File of the certificate's private key, as PEM, without a password."""
    tls_client_ca: Path | None = None
    """File of the authorities that sign client certificates, as PEM. None: clients need none."""
    allow_insecure_network: bool = False
    """Whether to listen on a network without encryption or authentication."""
    store: str = "hnsw"
    """Where records are kept: "hnsw" (on disk), "memory", or "postgres" (a database that servers share)."""
    postgres_dsn: str = field(default="", repr=False)
    """How to connect to the database, as libpq takes it; the PG* variables supply what is missing."""
    postgres_schema: str = "memory_service"
    """The database schema that has the tables."""
    data_dir: Path = Path("data")
    """Folder of the records, the index snapshots and the backups."""
    encryption_key_file: Path | None = None
    """File with the key of the data folder; None: the key is in the environment, or there is none."""
    disk_free_bytes_min: int = 64 << 20
    """Below this much free disk space, accept only writes that shrink the records; 0: no limit."""
    ballast_bytes: int = 64 << 20
    """Disk space held in reserve, so that deletions still work when the disk is full; 0: none."""
    embedder: str = "local"
    """The embedder, which turns text into vectors: "local", "openai" or "none"."""
    embedding_model: str = "text-embedding-3-small"
    """Model to request of the embedder "openai"."""
    embedding_dimension: int = 0
    """Dimension to request of the embedder "openai"; 0: the model's default."""
    embedder_timeout_s: float = 5.0
    """Seconds that a call waits for the embedder, retries included; then a write goes on without a vector."""
    embedder_retries: int = 2
    """How often a failed call to the embedder is retried."""
    embedder_pause_s: float = 5.0
    """Seconds for which the embedder is not called after three failures in a row."""
    llm: str = "none"
    """The language model for decisions: "openai", or "none" for rules alone."""
    llm_model: str = "gpt-4o-mini"
    """Model to request of the language model "openai"."""
    llm_timeout_s: float = 20.0
    """Seconds to wait for a complete answer of the language model, retries and repair included."""
    llm_retries: int = 1
    """How often a failed call to the language model is retried."""
    llm_tokens_per_minute_max: int = 200_000
    """Tokens that one caller may use per minute, prompts and answers together; 0: no limit."""
    llm_total_tokens_per_minute_max: int = 2_000_000
    """Tokens that all callers together may use per minute; 0: no limit."""
    llm_input_tokens_max: int = 12_000
    """Tokens of a prompt, estimated as a quarter of its characters."""
    reranker: str = "none"
    """The reranker, which orders the best results if a caller requests it: "fastembed" or "none"."""
    reranker_model: str = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Model of the reranker "fastembed"."""
    reranker_dir: Path | None = None
    """Folder of the model's files; None: they are downloaded once."""
    reranker_timeout_s: float = 5.0
    """Seconds to wait for the reranker."""
    overseer_skip_tools: tuple[str, ...] = ("getCurrentDate", "calculateTimestamp", "llm_analyze")
    """Tools whose results the overseer never keeps."""
    save_commands: tuple[str, ...] = ("save_memory", "save this", "remember this")
    """Messages that are commands to save a message."""
    save_recent_messages: int = 5
    """How many of the last messages of a conversation are candidates for saving."""
    fragment_characters: int = 1000
    """The most characters of a document fragment."""
    fragment_overlap: int = 100
    """The most characters that a fragment repeats from the previous one."""
    memory_half_life_days: float = 0.0
    """Days in which the importance of a memory halves; 0: never."""
    auth: tuple[str, ...] = ()
    """How callers authenticate: some of "keys", "jwt", "mtls"; empty: every caller may do everything."""
    api_keys: Path | None = None
    """File of API keys and certificate names.

    None: api-keys.json in `data_dir`, or the database for the store "postgres".
    """
    jwt_keys: str = ""
    """File or URL of the JSON Web Key Set that verifies tokens."""
    jwt_issuer: str = ""
    """The `iss` that a token must have."""
    jwt_audience: str = ""
    """The `aud` that a token must have, possibly among others."""
    jwt_algorithms: tuple[str, ...] = JWT_ALGORITHMS
    """Accepted signature algorithms."""
    jwt_lifetime_s_max: int = 0
    """Most seconds from a token's `iat` to its `exp`; 0: no limit, and `iat` is optional."""
    history_days: int = 30
    """Days for which replaced versions are kept, so that an undo can restore them; 0: not kept."""
    write_policy_file: Path | None = None
    """File of the write policy's rules. None: no rules."""
    write_policy: str = ""
    """Import path of a write policy's class, as "module:Class"; empty: none."""
    quarantine_days: int = 30
    """Days for which a quarantined write waits for review before it is discarded."""
    drain_s: float = 10.0
    """Seconds that running calls have to finish when the server stops."""
    sweep_s: float = 5.0
    """Seconds between two removals of expired data; reads omit it at once."""
    log_level: str = "info"
    """Lowest level that is logged: "debug", "info", "warning" or "error"."""
    connections_max: int = 800
    """Most open connections; less than the files that most systems let a process open."""
    connection_calls_max: int = 512
    """Most concurrent calls of one connection, streams included; clients queue the others."""
    connection_idle_s_max: int = 0
    """Seconds for which a connection may stay open without a running call; 0: no limit."""
    reflection: bool = True
    """Whether the server offers gRPC reflection, as grpcurl uses it."""
    audit: bool | None = None
    """Whether to keep an audit log of writes and refusals; None: only if callers are authenticated."""
    audit_reads: bool = False
    """Whether the audit log also records reads."""
    index: IndexSettings = field(default_factory=IndexSettings)
    """How namespaces are indexed."""
    limits: Limits = field(default_factory=Limits)
    """Limits on what callers may send."""

    @property
    def authenticates(self) -> bool:
        """Whether every caller must authenticate."""
        return bool(self.auth) or self.tls_client_ca is not None

    @property
    def shares_api_keys(self) -> bool:
        """Whether API keys and certificate names are in the database rather than in a file."""
        return self.store == "postgres" and self.api_keys is None

    @property
    def api_keys_file(self) -> Path:
        """File of API keys and certificate names."""
        return self.api_keys or self.data_dir / "api-keys.json"

    def _authentication_problems(self) -> tuple[tuple[bool, str], ...]:
        jwt = "jwt" in self.auth
        unknown = [name for name in self.auth if name not in AUTHENTICATIONS]
        # An option without the method that it belongs to may be a server left open by mistake.
        given = self.jwt_keys or self.jwt_issuer or self.jwt_audience or self.jwt_lifetime_s_max
        url = self.jwt_keys.partition("://")[0] if "://" in self.jwt_keys else ""
        return (
            (
                bool(unknown),
                f"auth has no {', '.join(unknown)}; choose none, or some of {', '.join(AUTHENTICATIONS)}",
            ),
            (len(set(self.auth)) != len(self.auth), "auth has duplicates"),
            (
                self.api_keys is not None and not {"keys", "mtls"} & set(self.auth),
                "api_keys is given, but auth has neither keys nor mtls",
            ),
            (
                not jwt and bool(given),
                "jwt_keys, jwt_issuer, jwt_audience or jwt_lifetime_s_max is given, but auth has no jwt",
            ),
            (jwt and not self.jwt_keys, "auth jwt needs jwt_keys"),
            (jwt and not self.jwt_issuer, "auth jwt needs jwt_issuer"),
            (jwt and not self.jwt_audience, "auth jwt needs jwt_audience"),
            (
                not self.jwt_algorithms or not set(self.jwt_algorithms) <= set(JWT_ALGORITHMS),
                f"jwt_algorithms must be some of {', '.join(JWT_ALGORITHMS)}",
            ),
            (self.jwt_lifetime_s_max < 0, "jwt_lifetime_s_max must not be negative"),
            (url not in ("", "https", "http"), "jwt_keys must be a file or an https:// URL"),
            (
                url == "http" and not _LOOPBACK_URL.match(self.jwt_keys),
                "jwt_keys over http:// would let attackers on the network forge tokens: use https://",
            ),
        )

    def _provider_problems(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not 0 < self.embedder_timeout_s < math.inf, "embedder_timeout must be positive and finite"),
            (self.embedder_retries < 0, "embedder_retries must not be negative"),
            (not 0 < self.embedder_pause_s < math.inf, "embedder_pause must be positive and finite"),
            (not 0 < self.llm_timeout_s < math.inf, "llm_timeout must be positive and finite"),
            (self.llm_retries < 0, "llm_retries must not be negative"),
            (self.llm_tokens_per_minute_max < 0, "llm_tokens_per_minute_max must not be negative"),
            (
                self.llm_total_tokens_per_minute_max < 0,
                "llm_total_tokens_per_minute_max must not be negative",
            ),
            (self.llm_input_tokens_max < 1, "llm_input_tokens_max must be positive"),
            (
                self.reranker_dir is not None and not self.reranker_dir.is_dir(),
                f"reranker_dir {str(self.reranker_dir)!r} is not a folder",
            ),
            (not 0 < self.reranker_timeout_s < math.inf, "reranker_timeout must be positive and finite"),
        )

    def _bounds_problems(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not 0 <= self.drain_s < math.inf, "drain must be finite and not negative"),
            (not 0 < self.sweep_s < math.inf, "sweep must be positive and finite"),
            (self.index.views_bytes_max < 0, "views_bytes_max must not be negative"),
            (self.index.items_bytes_max < 0, "items_bytes_max must not be negative"),
            (self.index.exact_vectors_max < 1, "exact_vectors_max must be positive"),
            (self.index.tail_vectors_max < 1, "tail_vectors_max must be positive"),
            (self.connections_max < 1, "connections_max must be positive"),
            (
                not 1 <= self.connection_calls_max <= 1_000_000,
                "connection_calls_max must be 1 to a million",
            ),
            (
                not 0 <= self.connection_idle_s_max <= 1_000_000,
                "connection_idle_s_max must be 0 to a million seconds",
            ),
            (self.limits.calls_per_s_max < 0, "calls_per_s_max must not be negative"),
            (self.limits.namespace_items_max < 0, "namespace_items_max must not be negative"),
            (self.limits.namespace_bytes_max < 0, "namespace_bytes_max must not be negative"),
        )

    def verify(self) -> Config:
        """Return the settings, or raise BadConfig with every problem they have."""
        problems = [
            problem
            for wrong, problem in (
                (not _is_address(self.address), f"address {self.address!r} is not HOST:PORT"),
                (
                    bool(self.health_address) and not _is_address(self.health_address),
                    f"health_address {self.health_address!r} is not HOST:PORT",
                ),
                (
                    len(self.server_name) > 256 or not self.server_name.isprintable(),
                    "server_name must be at most 256 printable characters",
                ),
                (
                    (self.tls_certificate is None) != (self.tls_key is None),
                    "tls_certificate and tls_key must be given together",
                ),
                (
                    self.tls_client_ca is not None and self.tls_certificate is None,
                    "tls_client_ca needs tls_certificate",
                ),
                (
                    "mtls" in self.auth and self.tls_client_ca is None,
                    "auth mtls needs tls_client_ca: otherwise clients send no certificate",
                ),
                (
                    self.data_dir.exists() and not self.data_dir.is_dir(),
                    f"data_dir {str(self.data_dir)!r} is not a folder",
                ),
                (
                    bool(self.postgres_dsn) and self.store != "postgres",
                    "postgres_dsn needs the store postgres",
                ),
                (
                    not _SCHEMA.fullmatch(self.postgres_schema),
                    "postgres_schema must be 1 to 63 lower-case letters, digits and _, a letter first",
                ),
                (self.disk_free_bytes_min < 0, "disk_free_bytes_min must not be negative"),
                (self.ballast_bytes < 0, "ballast_bytes must not be negative"),
                (self.embedding_dimension < 0, "embedding_dimension must not be negative"),
                (not 0 <= self.history_days <= 36_500, "history_days must be 0 to 36500"),
                (not 1 <= self.quarantine_days <= 36_500, "quarantine_days must be 1 to 36500"),
                *self._provider_problems(),
                (
                    not 1 <= len(self.save_commands) <= 32
                    or not all(c.strip() and len(c) <= 64 for c in self.save_commands),
                    "save_commands must be 1 to 32 texts of 1 to 64 characters",
                ),
                (not 1 <= self.save_recent_messages <= 100, "save_recent_messages must be 1 to 100"),
                (not 100 <= self.fragment_characters <= 8000, "fragment_characters must be 100 to 8000"),
                (
                    not 0 <= self.fragment_overlap <= self.fragment_characters // 2,
                    "fragment_overlap must be 0 to half of fragment_characters",
                ),
                (not 0 <= self.memory_half_life_days < 1e6, "memory_half_life must be 0 to a million days"),
                *self._authentication_problems(),
                (
                    bool(self.write_policy) and self.write_policy_file is not None,
                    "write_policy and write_policy_file cannot be given together",
                ),
                *self._bounds_problems(),
                (self.audit_reads and not self.audited, "audit_reads needs audit"),
            )
            if wrong
        ]
        if problems:
            raise BadConfig("; ".join(problems))
        return self

    @property
    def audited(self) -> bool:
        """Whether there is an audit log: by default with authenticated callers and a data folder."""
        if self.audit is not None:
            return self.audit
        return self.authenticates and self.store != "memory"
