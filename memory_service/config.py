"""Every setting of a server: one value, made once, checked before anything starts."""

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
    """Settings that cannot be; tells all that is wrong with them at once."""


def is_socket_file(address: str) -> bool:
    """Whether an address is that of a socket file, or an abstract one, and no port."""
    return address.startswith(("unix:", "unix-abstract:"))


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return is_socket_file(text) or (bool(host) and port.isdigit() and int(port) <= 65535)


@dataclass(frozen=True)
class Config:
    """The settings of a server. Secrets are not among them: `openai` reads its key itself."""

    address: str = "127.0.0.1:50051"
    """Host and port to listen on, or "unix:PATH"; port 0 takes a free one."""
    server_name: str = ""
    """What the server is called, in what it tells and in its audit log; empty: host name and port."""
    health_address: str = ""
    """Where health is told, too, and nothing else, without TLS and credentials. Empty: nowhere."""
    tls_certificate: Path | None = None
    """File of the server's certificate and those between it and its authority, as PEM. None: no TLS."""
    tls_key: Path | None = None
    """File of the certificate's private key, as PEM, without a password."""
    tls_client_ca: Path | None = None
    """File of the authorities that sign clients' certificates, as PEM. None: clients need none."""
    allow_insecure_network: bool = False
    """Whether to listen on a network even without encryption or without asking for credentials."""
    store: str = "hnsw"
    """Where records are kept: "hnsw" (on disk), "memory", or "postgres" (a database that servers share)."""
    postgres_dsn: str = field(default="", repr=False)
    """How to connect to the database, as libpq takes it; what it leaves out is of the PG* variables."""
    postgres_schema: str = "memory_service"
    """The schema of the database that has the tables."""
    data_dir: Path = Path("data")
    """Folder of the records, the index snapshots and the backups."""
    encryption_key_file: Path | None = None
    """File with the key of the data folder; None: its key is in the environment, or it has none."""
    disk_free_bytes_min: int = 64 << 20
    """Below this room on the disk only what makes the records smaller is written; 0: no limit."""
    ballast_bytes: int = 64 << 20
    """Room held back on the disk, so that deletions go on when it is full; 0: none."""
    embedder: str = "local"
    """What turns text into vectors: "local", "openai" or "none"."""
    embedding_model: str = "text-embedding-3-small"
    """Model to ask the embedder "openai" for."""
    embedding_dimension: int = 0
    """Dimension to ask the embedder "openai" for; 0 leaves it to the model."""
    embedder_timeout_s: float = 5.0
    """Seconds that a call waits for the embedder, retries included; then a write goes on without."""
    embedder_retries: int = 2
    """How often a call of the embedder is repeated."""
    embedder_pause_s: float = 5.0
    """Seconds for which an embedder that failed three times in a row is not asked."""
    llm: str = "none"
    """What decides where a language model can: "openai", or "none" for rules alone."""
    llm_model: str = "gpt-4o-mini"
    """Model to ask the language model "openai" for."""
    llm_timeout_s: float = 20.0
    """Seconds to wait for a whole answer of the language model, retries and repair included."""
    llm_retries: int = 1
    """How often a call of the language model is repeated."""
    llm_tokens_per_minute_max: int = 200_000
    """Tokens that questions and answers of one caller may use in any minute; 0 is no cap."""
    llm_total_tokens_per_minute_max: int = 2_000_000
    """Tokens that those of all callers together may use in any minute; 0 is no cap."""
    llm_input_tokens_max: int = 12_000
    """Tokens of a question, estimated as a quarter of its characters."""
    reranker: str = "none"
    """What puts the best results in order where a caller asks for it: "fastembed" or "none"."""
    reranker_model: str = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Model of the reranker "fastembed"."""
    reranker_dir: Path | None = None
    """Folder of the model's files; None: it is downloaded, once."""
    reranker_timeout_s: float = 5.0
    """Seconds to wait for the reranker."""
    overseer_skip_tools: tuple[str, ...] = ("getCurrentDate", "calculateTimestamp", "llm_analyze")
    """Tools whose results the overseer never keeps."""
    save_commands: tuple[str, ...] = ("save_memory", "save this", "remember this")
    """Messages that are commands to save."""
    save_recent_messages: int = 5
    """How many of the last messages of a conversation are looked at for one to save."""
    fragment_characters: int = 1000
    """The most characters of a document's fragment."""
    fragment_overlap: int = 100
    """The most characters that a fragment repeats of the one before."""
    memory_half_life_days: float = 0.0
    """Days in which the importance of a memory halves; 0: it does not."""
    auth: tuple[str, ...] = ()
    """What callers authenticate with: some of "keys", "jwt", "mtls"; nothing: everybody may do everything."""
    api_keys: Path | None = None
    """File of API keys and of certificates' names; None: api-keys.json in `data_dir`, with the store postgres
    the database."""
    jwt_keys: str = ""
    """File or URL of the JSON Web Key Set that tokens are signed with."""
    jwt_issuer: str = ""
    """The `iss` that a token must have."""
    jwt_audience: str = ""
    """The `aud` that a token must have, or have among others."""
    jwt_algorithms: tuple[str, ...] = JWT_ALGORITHMS
    """Algorithms of signatures that are taken."""
    jwt_lifetime_s_max: int = 0
    """Seconds from the `iat` of a token to its `exp` at most; 0: no limit, and it needs no `iat`."""
    history_days: int = 30
    """Days for which what was replaced is kept, so that an undo can bring it back; 0: it is not kept."""
    write_policy_file: Path | None = None
    """File of the rules of what may be written. None: there are none."""
    write_policy: str = ""
    """Import path of a class that says what may be written, as "module:Class"; empty: there is none."""
    quarantine_days: int = 30
    """Days for which a write that was put into quarantine waits for a review; then it is forgotten."""
    drain_s: float = 10.0
    """Seconds that calls under way have to finish when the server is told to stop."""
    sweep_s: float = 5.0
    """Seconds between two removals of what has expired; reads leave it out at once."""
    log_level: str = "info"
    """Least level of what is logged: "debug", "info", "warning" or "error"."""
    connections_max: int = 800
    """Connections at a time; below the number of files that most systems let a process open."""
    connection_calls_max: int = 512
    """Calls of one connection at a time, streams included; a client keeps the others back."""
    connection_idle_s_max: int = 0
    """Seconds for which a connection may stay open without a call under way; 0: no limit."""
    reflection: bool = True
    """Whether clients may ask for the API's descriptors, as grpcurl does."""
    audit: bool | None = None
    """Whether there is an audit log of writes and refusals; None: where callers have names."""
    audit_reads: bool = False
    """Whether the audit log has reads, too."""
    index: IndexSettings = field(default_factory=IndexSettings)
    """How namespaces are indexed."""
    limits: Limits = field(default_factory=Limits)
    """What callers may send."""

    @property
    def authenticates(self) -> bool:
        """Whether nobody is served who has not proved who they are."""
        return bool(self.auth) or self.tls_client_ca is not None

    @property
    def shares_api_keys(self) -> bool:
        """Whether API keys and certificates' names are in the database, and not in a file."""
        return self.store == "postgres" and self.api_keys is None

    @property
    def api_keys_file(self) -> Path:
        """File of API keys and of certificates' names."""
        return self.api_keys or self.data_dir / "api-keys.json"

    def _authentication_problems(self) -> tuple[tuple[bool, str], ...]:
        jwt = "jwt" in self.auth
        unknown = [name for name in self.auth if name not in AUTHENTICATIONS]
        # An option of what is not asked for is a server that is open by mistake.
        given = self.jwt_keys or self.jwt_issuer or self.jwt_audience or self.jwt_lifetime_s_max
        url = self.jwt_keys.partition("://")[0] if "://" in self.jwt_keys else ""
        return (
            (
                bool(unknown),
                f"auth has no {', '.join(unknown)}; there are none, {', '.join(AUTHENTICATIONS)}",
            ),
            (len(set(self.auth)) != len(self.auth), "auth names something twice"),
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
                "jwt_keys over http:// would let anybody on the way sign tokens: use https://",
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
                f"reranker_dir {str(self.reranker_dir)!r} is no folder",
            ),
            (not 0 < self.reranker_timeout_s < math.inf, "reranker_timeout must be positive and finite"),
        )

    def _bounds_problems(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not 0 <= self.drain_s < math.inf, "drain must not be negative, and finite"),
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
        """Return the settings, or raise BadConfig with everything that is wrong with them."""
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
                    "tls_client_ca has no use without tls_certificate",
                ),
                (
                    "mtls" in self.auth and self.tls_client_ca is None,
                    "auth mtls needs tls_client_ca: without it no client shows a certificate",
                ),
                (
                    self.data_dir.exists() and not self.data_dir.is_dir(),
                    f"data_dir {str(self.data_dir)!r} is no folder",
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
        """Whether there is an audit log: by default where callers have names and a data folder is used."""
        if self.audit is not None:
            return self.audit
        return self.authenticates and self.store != "memory"
