"""The command that runs a server."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service import __version__
from memory_service.cli import output
from memory_service.cli.compiled_modules import use_compiled_modules
from memory_service.cli.options import option, postgres_options
from memory_service.cli.workers import WorkerFailed, run_workers, workers_problem

if TYPE_CHECKING:
    from memory_service.config import Config

_INDEX_SETTINGS = ("exact_vectors_max", "tail_vectors_max", "views_bytes_max", "items_bytes_max")
_LIMITS = ("calls_per_s_max", "namespace_items_max", "namespace_bytes_max")
# Of malloc.h.
_M_MMAP_THRESHOLD = -3


@click.command()
@option(
    "--address",
    default="127.0.0.1:50051",
    help="Host and port to listen on, or unix:PATH; port 0 takes a free one.",
)
@option(
    "--server-name",
    default="",
    help="What the server is called, in what it tells of itself and in its audit log; if not given, by host"
    " name and port.",
)
@option(
    "--health-address",
    default="",
    help="Host and port where health is told, too, and nothing else: without TLS and credentials, and never"
    " behind other calls.",
)
@option(
    "--tls-certificate",
    type=click.Path(path_type=Path),
    default=None,
    help="Encrypt, with the certificate of this file (PEM, with those between it and its authority).",
)
@option(
    "--tls-key",
    type=click.Path(path_type=Path),
    default=None,
    help="File of the certificate's private key (PEM).",
)
@option(
    "--tls-client-ca",
    type=click.Path(path_type=Path),
    default=None,
    help="Serve only clients whose certificates are signed by an authority of this file (PEM); without --auth"
    " each of them may do everything.",
)
@option(
    "--allow-insecure-network",
    is_flag=True,
    default=False,
    help="Start even if everybody in the network can then listen in, or read, change and delete everything.",
)
@option(
    "--store",
    type=click.Choice(["hnsw", "memory", "postgres"]),
    default="hnsw",
    help="Where records are kept: in the data folder, in memory, or in a database that servers share.",
)
@postgres_options
@option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default="data",
    help="Folder of records, index snapshots and backups.",
)
@option(
    "--encryption-key-file",
    type=click.Path(path_type=Path),
    default=None,
    help="File with the key that encrypts the data folder: 32 bytes in hexadecimal or base64;"
    " or set MEMORY_SERVICE_ENCRYPTION_KEY.",
)
@option(
    "--disk-free-bytes-min",
    default=64 << 20,
    help="With less room on the disk only what makes the records smaller is written; 0: no limit.",
)
@option(
    "--ballast-bytes",
    default=64 << 20,
    help="Room held back on the disk, so that deletions go on when it is full; 0: none.",
)
@option(
    "--embedder",
    type=click.Choice(["local", "openai", "none"]),
    default="local",
    help="What turns text into vectors.",
)
@option("--embedding-model", default="text-embedding-3-small", help="Model to ask the embedder openai for.")
@option(
    "--embedding-dimension", default=0, help="Dimension to ask the embedder openai for; 0: the model's own."
)
@option(
    "--embedder-timeout",
    "embedder_timeout_s",
    default=5.0,
    help="Seconds that a call waits for the embedder, retries included; then a write goes on without.",
)
@option("--embedder-retries", default=2, help="How often a call of the embedder is repeated.")
@option(
    "--embedder-pause",
    "embedder_pause_s",
    default=5.0,
    help="Seconds for which an embedder that failed three times in a row is not asked.",
)
@option(
    "--llm",
    type=click.Choice(["none", "openai"]),
    default="none",
    help="Language model that decides where one can; none: rules do.",
)
@option("--llm-model", default="gpt-4o-mini", help="Model to ask the language model openai for.")
@option(
    "--llm-timeout",
    "llm_timeout_s",
    default=20.0,
    help="Seconds to wait for a whole answer of the language model, retries and repair included.",
)
@option("--llm-retries", default=1, help="How often a call of the language model is repeated.")
@option(
    "--llm-tokens-per-minute-max",
    default=200_000,
    help="Tokens that questions and answers of one caller may use in any minute; 0: no cap.",
)
@option(
    "--llm-total-tokens-per-minute-max",
    default=2_000_000,
    help="Tokens that those of all callers together may use in any minute; 0: no cap.",
)
@option(
    "--llm-input-tokens-max",
    default=12_000,
    help="Tokens of a question, estimated as a quarter of its characters.",
)
@option(
    "--reranker",
    type=click.Choice(["none", "fastembed"]),
    default="none",
    help="What puts the best results in order where a caller asks for it.",
)
@option(
    "--reranker-model",
    default="Xenova/ms-marco-MiniLM-L-6-v2",
    help="Model of the reranker fastembed; downloaded at the first start unless --reranker-dir is given.",
)
@option(
    "--reranker-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder of the reranker's model: model.onnx and its tokenizer. Nothing is downloaded.",
)
@option("--reranker-timeout", "reranker_timeout_s", default=5.0, help="Seconds to wait for the reranker.")
@option(
    "--overseer-skip-tools",
    default="getCurrentDate,calculateTimestamp,llm_analyze",
    help="Tools whose results the overseer never keeps, comma separated.",
)
@option(
    "--save-commands",
    default="save_memory,save this,remember this",
    help="Messages that are commands to save, comma separated.",
)
@option(
    "--save-recent-messages",
    default=5,
    help="Last messages of a conversation that are looked at for one to save.",
)
@option("--fragment-characters", default=1000, help="The most characters of a document's fragment.")
@option(
    "--fragment-overlap", default=100, help="The most characters that a fragment repeats of the one before."
)
@option(
    "--memory-half-life",
    "memory_half_life_days",
    default=0.0,
    help="Days in which the importance of a memory halves; 0: it does not.",
)
@option(
    "--auth",
    default="none",
    help="What callers authenticate with: none, or some of keys, jwt and mtls, comma separated.",
)
@option(
    "--api-keys",
    type=click.Path(path_type=Path),
    default=None,
    help="File of API keys, made by `memory-service keys`; if not given, api-keys.json in the data folder, or"
    " with the store postgres the database.",
)
@option(
    "--jwt-keys", default="", help="File or https:// URL of the JSON Web Key Set that tokens are signed with."
)
@option("--jwt-issuer", default="", help="The iss that a JWT must have.")
@option("--jwt-audience", default="", help="The aud that a JWT must have, or have among others.")
@option(
    "--jwt-algorithms",
    default="EdDSA,ES256,RS256",
    help="Algorithms of JWTs' signatures that are taken, comma separated.",
)
@option(
    "--jwt-lifetime-s-max",
    default=0,
    help="Seconds from the iat of a JWT to its exp at most; 0: no limit, and it needs no iat.",
)
@option(
    "--history-days",
    default=30,
    help="Days for which what was replaced is kept, so that an undo can bring it back; 0: it is not kept.",
)
@option(
    "--write-policy-file",
    type=click.Path(path_type=Path),
    default=None,
    help="File of rules (TOML or JSON) that say what may be written, and what is refused.",
)
@option(
    "--write-policy",
    default="",
    help="Class of your own that says what may be written, as MODULE:CLASS; its code runs in the server.",
)
@option(
    "--quarantine-days",
    default=30,
    help="Days for which a write that a policy put into quarantine waits for a review.",
)
@option(
    "--workers",
    default=1,
    help="Processes that serve, each at a port of its own from that of --address on; several need the store"
    " postgres.",
)
@option("--drain", "drain_s", default=10.0, help="Seconds that calls under way have to finish at the end.")
@option(
    "--sweep",
    "sweep_s",
    default=5.0,
    help="Seconds between two removals of what has expired; reads leave it out at once.",
)
@option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Least level of what is logged to stderr.",
)
@option(
    "--reflection/--no-reflection", default=True, help="Whether clients may ask for the API's descriptors."
)
@option("--connections-max", default=800, help="Connections at a time; one more is closed at once.")
@option(
    "--connection-calls-max",
    default=512,
    help="Calls of one connection at a time, streams included; its client keeps the others back.",
)
@option(
    "--connection-idle-s-max",
    default=0,
    help="Seconds for which a connection may stay open without a call under way; 0: no limit.",
)
@option(
    "--calls-per-s-max",
    default=0,
    help="Calls a second that a caller may make, or, where callers have no names, all those of a namespace;"
    " 0: no limit.",
)
@option(
    "--namespace-items-max",
    default=0,
    help="Items that a namespace may hold, about; 0: as many as there is room for.",
)
@option(
    "--namespace-bytes-max",
    default=0,
    help="Bytes of items and states that a namespace may hold, about; 0: as many as there is room for.",
)
@option(
    "--audit/--no-audit",
    default=None,
    help="Whether writes, deletes, administration and refused calls are kept in an audit log; "
    "if not said, it is kept where callers need credentials.",
)
@option("--audit-reads", is_flag=True, default=False, help="Whether the audit log has reads, too.")
@option("--exact-vectors-max", default=16384, help="Up to this many vectors a namespace is searched exactly.")
@option(
    "--tail-vectors-max",
    default=1024,
    help="New vectors that are searched exactly before they join the HNSW graph.",
)
@option("--views-bytes-max", default=1 << 30, help="Memory for indexes; the least recently used are dropped.")
@option("--items-bytes-max", default=128 << 20, help="Memory for items kept ready to send.")
def serve(workers: int, **settings: Any) -> None:
    """Run a server until it is told to stop (Ctrl-C or SIGTERM)."""
    _quiet_libraries()
    use_compiled_modules()
    # Imported here: a wrong option is told without the wait for all that a server loads.
    import uvloop
    from threadpoolctl import threadpool_limits

    from memory_service.config import BadConfig, Config
    from memory_service.indexes.settings import IndexSettings
    from memory_service.limits import Limits
    from memory_service.records.base import CannotOpen
    from memory_service.runtime.failpoints import FAILPOINTS, VARIABLE, BadFailpoints
    from memory_service.server.admission.intake import EventLoop
    from memory_service.server.logs import configure_logging
    from memory_service.server.server import run

    commands = settings["save_commands"].split(",")
    settings["save_commands"] = tuple(command.strip() for command in commands if command.strip())
    settings["overseer_skip_tools"] = tuple(
        filter(None, re.split(r"[,\s]+", settings["overseer_skip_tools"]))
    )
    settings["auth"] = _names(settings["auth"], none="none")
    settings["jwt_algorithms"] = _names(settings["jwt_algorithms"])
    index = IndexSettings(**{name: settings.pop(name) for name in _INDEX_SETTINGS})
    limits = Limits(**{name: settings.pop(name) for name in _LIMITS})
    try:
        config = Config(**settings, index=index, limits=limits).verify()
        if problem := workers_problem(config, workers):
            raise BadConfig(problem)
        if workers > 1:
            run_workers(config, workers, lambda addresses: _announce(config, addresses, ""))
            return
        configure_logging(config.log_level)
        FAILPOINTS.arm(os.environ.get(VARIABLE, ""))
        # A search is short and others wait for the cores: one thread each.
        with threadpool_limits(limits=1):
            _calm_garbage_collection()
            _give_back_large_blocks()
            # gRPC's thread hands over calls one by one. Where it waited 5 ms for its turn, Python's default,
            # a busy server would hear of few of the calls that are there, and not refuse them in time.
            sys.setswitchinterval(0.0005)
            uvloop.run(run(config, partial(_announce, config)), loop_factory=EventLoop)
    except (BadConfig, BadFailpoints, CannotOpen, WorkerFailed, OSError) as error:
        raise click.ClickException(str(error)) from error


def _names(text: str, none: str = "") -> tuple[str, ...]:
    """Return the names of a comma separated list; `none` alone is an empty one."""
    names = tuple(name.strip() for name in text.split(","))
    return () if names == (none,) else names


def _calm_garbage_collection() -> None:
    """Look for cycles less often than Python does by itself: what is loaded here stays, and a call makes few.

    Nor so seldom that one look, which everything waits for, takes long: of 50,000 objects it takes 30 ms. Nor
    so often that what hundreds of waiting calls hold is taken to be old, which is looked at as a whole.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 50)


def _give_back_large_blocks() -> None:
    """Have glibc return the memory of large messages when they are freed.

    gRPC reads into blocks of 64 KiB. By itself glibc keeps them, scattered: hundreds of MiB after a burst.
    Doubled, those are kept again; halved, ordinary answers pay for a system call each.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 32 * 1024)


def _quiet_libraries() -> None:
    # gRPC writes a line for each message that it refuses: a caller could fill the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1" if name.startswith("OPENBLAS") else "2")


def _announce(config: Config, address: str, health_address: str) -> None:
    places = {"hnsw": str(config.data_dir), "postgres": f"PostgreSQL, schema {config.postgres_schema}"}
    where = f"records in {places.get(config.store, 'memory')}"
    health = f", health alone on {health_address}" if health_address else ""
    output.tell(f"memory-service {__version__} listening on {address} ({where}){health}\n")
    output.tell("Try it from another terminal:")
    for line in first_calls(config, address):
        output.tell(f"  {line}")
    output.tell("")


def first_calls(config: Config, address: str) -> tuple[str, str]:
    """Return a command that writes to this server, and one that reads from it.

    What only the caller has is in capitals: an API key, and files of certificates.
    """
    # Clients need addresses that there are; a server that listens on all of them is there, too.
    reached = [re.sub(r"^(0\.0\.0\.0|\[::\]):", "127.0.0.1:", each) for each in address.split(",")]
    ours = "" if reached == ["127.0.0.1:50051"] else f" --address {','.join(reached)}"
    theirs = ""
    if config.tls_certificate is None:
        theirs += " -plaintext"
    else:
        ours += " --tls-ca CA.pem"
        theirs += " -cacert CA.pem"
    if config.tls_client_ca is not None:
        ours += " --tls-certificate CLIENT.pem --tls-key CLIENT.key"
        theirs += " -cert CLIENT.pem -key CLIENT.key"
    if {"keys", "jwt"} & set(config.auth):
        ours += " --api-key KEY"
        theirs += " -H 'authorization: Bearer KEY'"
    return (
        f'.venv/bin/memory-service add{ours} "Ada likes green tea"',
        f'grpcurl{theirs} -d \'{{"namespace":"default","options":{{"query_text":"what does Ada drink?"}}}}\''
        f" {reached[0]} memory_service.v1.MemoryService/Retrieve",
    )
