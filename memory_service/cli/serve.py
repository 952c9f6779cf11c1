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
_PATH = click.Path(path_type=Path)
# From malloc.h.
_M_MMAP_THRESHOLD = -3


# `tests/options_page.py` writes these options, in this order, to docs/configuration.md.
@click.command()
@option(
    "--address",
    default="127.0.0.1:50051",
    help="Listen on this host:port (port 0: any free one) or unix:PATH. Non-local addresses need TLS and"
    " credentials.",
)
@option(
    "--server-name",
    default="",
    help="Name in GetInfo, log and audit log; if unset, host and port.",
)
@option(
    "--health-address",
    default="",
    help="Also serve gRPC health checks on this host:port, without TLS or credentials, independent of"
    " request load.",
)
@option("--tls-certificate", type=_PATH, default=None, help="Certificate chain of the server (PEM file).")
@option("--tls-key", type=_PATH, default=None, help="Private key of the certificate (PEM file).")
@option(
    "--tls-client-ca",
    type=_PATH,
    default=None,
    help="Require client certificates of these CAs (PEM file); without --auth, they give full access.",
)
@option(
    "--allow-insecure-network",
    is_flag=True,
    default=False,
    help="Allow a non-local address without TLS or credentials: full access for anyone on the network.",
)
@option(
    "--connections-max",
    default=800,
    help="Maximum open connections; further ones are closed. Keep it below `ulimit -n`.",
)
@option(
    "--connection-calls-max",
    default=512,
    help="Maximum concurrent calls per connection, streams included; clients queue the others.",
)
@option(
    "--connection-idle-s-max",
    default=0,
    help="Close a connection after this many seconds without a running call; 0: never.",
)
@option(
    "--calls-per-s-max",
    default=0,
    help="Rate limit and burst per caller, or per namespace without --auth; 0: none.",
)
@option("--reflection/--no-reflection", default=True, help="Serve gRPC reflection, as grpcurl needs.")
@option(
    "--workers",
    default=1,
    help="Server processes; several need --store postgres. Ports count up from --address and"
    " --health-address; each has a folder in the data folder.",
)
@option("--drain", "drain_s", default=10.0, help="Seconds for running calls to finish at shutdown.")
@option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Lowest level to log: debug, info, warning or error; JSON lines on stderr.",
)
@option(
    "--store",
    type=click.Choice(["hnsw", "memory", "postgres"]),
    default="hnsw",
    help="Keep records on disk (hnsw), in memory until exit (memory) or in a shared database (postgres).",
)
@postgres_options
@option(
    "--data-dir",
    type=_PATH,
    default="data",
    help="Folder for records, index snapshots and backups; with postgres for caches and audit log, one per"
    " server.",
)
@option(
    "--encryption-key-file",
    type=_PATH,
    default=None,
    help="File with the encryption key: 32 bytes in hexadecimal or base64. Or set the key in"
    " MEMORY_SERVICE_ENCRYPTION_KEY.",
)
@option(
    "--disk-free-bytes-min",
    default=64 << 20,
    help="With less free disk space, reject writes that grow the records; 0: no limit.",
)
@option(
    "--ballast-bytes",
    default=64 << 20,
    help="Disk space to reserve for deletions on a full disk; 0: none.",
)
@option(
    "--namespace-items-max",
    default=0,
    help="Maximum items per namespace, exceeded slightly by concurrent calls; 0: no limit.",
)
@option(
    "--namespace-bytes-max",
    default=0,
    help="Maximum bytes of items and states per namespace; the last write may exceed it; 0: no limit.",
)
@option("--history-days", default=30, help="Days to keep replaced versions, for reads and undo; 0: none.")
@option(
    "--sweep",
    "sweep_s",
    default=5.0,
    help="Seconds between removals of expired items; reads omit them at once.",
)
@option(
    "--exact-vectors-max",
    default=16384,
    help="Vectors per namespace to search exactly; above it, use an HNSW graph.",
)
@option(
    "--tail-vectors-max",
    default=1024,
    help="New vectors to search exactly before they join the graph.",
)
@option(
    "--views-bytes-max",
    default=1 << 30,
    help="Memory for namespace indexes (LRU; the last one may exceed it); 0: keep none.",
)
@option("--items-bytes-max", default=128 << 20, help="Memory for items cached ready to send.")
@option(
    "--auth",
    default="none",
    help="Accept these credentials: none, or a comma-separated list of keys, jwt, mtls.",
)
@option(
    "--api-keys",
    type=_PATH,
    default=None,
    help="API key file; if unset, api-keys.json in the data folder, or with postgres the database.",
)
@option("--jwt-keys", default="", help="JSON Web Key Set that verifies tokens: file or https:// URL.")
@option("--jwt-issuer", default="", help="Required iss of a token.")
@option("--jwt-audience", default="", help="Required aud of a token, possibly among others.")
@option(
    "--jwt-algorithms",
    default="EdDSA,ES256,RS256",
    help="Accepted signature algorithms, comma-separated.",
)
@option(
    "--jwt-lifetime-s-max",
    default=0,
    help="Maximum seconds from iat to exp of a token; 0: no limit, iat optional.",
)
@option(
    "--audit/--no-audit",
    default=None,
    help="Keep an audit log; if unset, on with --auth or --tls-client-ca, except with --store memory.",
)
@option("--audit-reads", is_flag=True, default=False, help="Also record reads in the audit log.")
@option("--write-policy-file", type=_PATH, default=None, help="TOML or JSON file of write rules.")
@option(
    "--write-policy",
    default="",
    help="Your own write policy, as MODULE:CLASS; its code runs in the server.",
)
@option(
    "--quarantine-days",
    default=30,
    help="Days before an unreviewed write in quarantine is dropped.",
)
@option(
    "--embedder",
    type=click.Choice(["local", "openai", "none"]),
    default="local",
    help="Source of vectors: local (built-in model), openai (any compatible API) or none.",
)
@option("--embedding-model", default="text-embedding-3-small", help="Model for --embedder openai.")
@option(
    "--embedding-dimension",
    default=0,
    help="Dimension to request of openai; 0: the model's default.",
)
@option(
    "--embedder-timeout",
    "embedder_timeout_s",
    default=5.0,
    help="Seconds a call waits for the embedder, retries included; then it continues without.",
)
@option("--embedder-retries", default=2, help="Retries of a failed request to the embedder.")
@option(
    "--embedder-pause",
    "embedder_pause_s",
    default=5.0,
    help="Seconds without requests after three failures in a row.",
)
@option(
    "--llm",
    type=click.Choice(["none", "openai"]),
    default="none",
    help="Language model for decisions: openai (any compatible API), or none: built-in rules.",
)
@option("--llm-model", default="gpt-4o-mini", help="Model for --llm openai.")
@option(
    "--llm-timeout",
    "llm_timeout_s",
    default=20.0,
    help="Seconds to wait for an answer, including retries and repair of invalid output.",
)
@option("--llm-retries", default=1, help="Retries after a connection error, 408, 409, 429 or 5xx.")
@option(
    "--llm-tokens-per-minute-max",
    default=200_000,
    help="Tokens per minute and caller (per namespace without --auth), input and output; 0: no limit.",
)
@option(
    "--llm-total-tokens-per-minute-max",
    default=2_000_000,
    help="Tokens per minute for all callers together; 0: no limit.",
)
@option(
    "--llm-input-tokens-max",
    default=12_000,
    help="Maximum tokens per prompt, estimated at 4 characters each.",
)
@option(
    "--reranker",
    type=click.Choice(["none", "fastembed"]),
    default="none",
    help="Reranker for callers that request it: fastembed (local cross-encoder) or none.",
)
@option(
    "--reranker-model",
    default="Xenova/ms-marco-MiniLM-L-6-v2",
    help="Model of fastembed, downloaded at first start unless --reranker-dir is set.",
)
@option(
    "--reranker-dir",
    type=_PATH,
    default=None,
    help="Folder with model.onnx and its tokenizer; disables the download.",
)
@option("--reranker-timeout", "reranker_timeout_s", default=5.0, help="Seconds to wait for the reranker.")
@option(
    "--overseer-skip-tools",
    default="getCurrentDate,calculateTimestamp,llm_analyze",
    help="Tools whose results are never stored, comma-separated; empty: none.",
)
@option(
    "--save-commands",
    default="save_memory,save this,remember this",
    help="Messages that are commands to save, comma-separated.",
)
@option("--save-recent-messages", default=5, help="Recent messages to search for the one to save.")
@option("--fragment-characters", default=1000, help="Maximum characters per document fragment.")
@option(
    "--fragment-overlap",
    default=100,
    help="Maximum characters repeated from the previous fragment.",
)
@option(
    "--memory-half-life",
    "memory_half_life_days",
    default=0.0,
    help="Days in which a memory's importance halves; 0: never.",
)
def serve(workers: int, **settings: Any) -> None:
    """Start the server. Ctrl-C or SIGTERM stops it."""
    # Loading creates hardly any cycles, and looking for them would take a tenth of its time.
    gc.disable()
    _quiet_libraries()
    use_compiled_modules()
    # Imported here, so that a wrong option is reported without loading the whole server first.
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
        # One thread per search: searches are short, and other calls need the cores.
        with threadpool_limits(limits=1):
            _calm_garbage_collection()
            _give_back_large_blocks()
            # gRPC's thread hands over calls one by one. With Python's default of 5 ms per turn, a busy server
            # would learn of waiting calls too late to reject them in time.
            sys.setswitchinterval(0.0005)
            uvloop.run(run(config, partial(_announce, config)), loop_factory=EventLoop)
    except (BadConfig, BadFailpoints, CannotOpen, WorkerFailed, OSError) as error:
        raise click.ClickException(str(error)) from error


def _names(text: str, none: str = "") -> tuple[str, ...]:
    """Return the names in a comma-separated list; `none` alone stands for an empty list."""
    names = tuple(name.strip() for name in text.split(","))
    return () if names == (none,) else names


def _calm_garbage_collection() -> None:
    """Collect cycles less often than Python's default: loaded modules stay, and calls create few cycles.

    A higher threshold makes each collection, which blocks everything, longer: 30 ms for 50,000 objects. A
    lower one moves the objects of hundreds of waiting calls to the oldest generation, whose collections are
    full ones.
    """
    gc.freeze()
    gc.set_threshold(5_000, 10, 50)
    gc.enable()


def _give_back_large_blocks() -> None:
    """Have glibc return the memory of large messages when they are freed.

    gRPC reads into blocks of 64 KiB, which glibc keeps by default: hundreds of MiB after a burst. With twice
    this threshold it keeps them again; with half of it, each ordinary response costs a system call.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 32 * 1024)


def _quiet_libraries() -> None:
    # gRPC logs each message that it rejects: a caller could fill the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1" if name.startswith("OPENBLAS") else "2")


def _announce(config: Config, address: str, health_address: str) -> None:
    places = {"hnsw": str(config.data_dir), "postgres": f"PostgreSQL, schema {config.postgres_schema}"}
    where = f"records in {places.get(config.store, 'memory')}"
    health = f", health checks on {health_address}" if health_address else ""
    output.tell(f"memory-service {__version__} listening on {address} ({where}){health}\n")
    output.tell("Try it from another terminal:")
    for line in first_calls(config, address):
        output.tell(f"  {line}")
    output.tell("")


def first_calls(config: Config, address: str) -> tuple[str, str]:
    """Return a command that writes to this server, and one that reads from it.

    Values that only the caller has are in capitals: an API key, and certificate files.
    """
    # Clients cannot connect to a wildcard address, but a server that listens on it also has 127.0.0.1.
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
