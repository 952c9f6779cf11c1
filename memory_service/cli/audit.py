"""Commands on the audit log of a data folder, with or without a running server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_service.cli import output, rendering
from memory_service.cli.encryption import key_file_option, key_of
from memory_service.cli.options import option
from memory_service.cli.session import CommandError

if TYPE_CHECKING:
    from memory_service.audit.entries import Line

_DATA_DIR = option(
    "--data-dir", type=click.Path(path_type=Path), default="data", help="Data folder of the server."
)


@click.group()
def audit() -> None:
    """Read the audit log, or verify that it was not changed."""


@audit.command()
@_DATA_DIR
@option(
    "--from-sequence",
    variable="AUDIT_FROM_SEQUENCE",
    default=1,
    help="First entry of the log, if earlier files were archived.",
)
@option(
    "--known",
    variable="AUDIT_KNOWN",
    default="",
    help="Entry that the log must contain, as printed by an earlier run: SEQUENCE:HASH.",
)
@key_file_option
def verify(data_dir: Path, from_sequence: int, known: str, encryption_key_file: Path | None) -> None:
    """Verify the hash chain of the audit log. Exit code 1: it is broken, at the line printed.

    With the key of an encrypted log, also verify that each entry was sealed with it.

    Prints the last entry as SEQUENCE:HASH. Keep it where an attacker of the data folder cannot change it.
    """
    from memory_service.audit.files import Head
    from memory_service.audit.verification import verify

    match = re.fullmatch(r"(\d+):([0-9a-f]{64})", known)
    if known and match is None:
        raise click.BadParameter("is not SEQUENCE:HASH", param_hint="--known")
    noted = Head(int(match[1]), match[2]) if match else None
    key = key_of(data_dir, encryption_key_file, needed=False)
    with _reading(data_dir) as folder:
        verdict = verify(folder, from_sequence, noted, key)
    for sequence in verdict.healed:
        output.note(f"note: entry {sequence} records that a restart removed an incomplete end")
    if verdict.torn_bytes and verdict.problem is None:
        output.note(f"note: the last entry is incomplete ({verdict.torn_bytes} bytes)")
    if verdict.problem is not None:
        raise CommandError(str(verdict.problem))
    if verdict.sealed_count and key is None:
        output.note("note: without the key, only the chain was verified, not the sealed content")
    sealed = f", {verdict.sealed_count} of them sealed" if verdict.sealed_count else ""
    output.tell(f"{verdict.entry_count} entries{sealed} in {verdict.file_count} files, the chain is intact")
    output.tell(f"{verdict.last.sequence}:{verdict.last.hash}")


@audit.command()
@_DATA_DIR
@option("--rpc", variable="AUDIT_RPC", default="", help="Only calls of this method, such as Delete.")
@option("--caller", variable="AUDIT_CALLER", default="", help="Only calls of this principal.")
@option("--credential", variable="AUDIT_CREDENTIAL", default="", help="Only calls with this credential id.")
@option("--namespace", variable="AUDIT_NAMESPACE", default="", help="Only calls on this namespace.")
@option("--id", "wanted_id", variable="AUDIT_ID", default="", help="Only calls on this id or key.")
@option(
    "--decision",
    variable="AUDIT_DECISION",
    type=click.Choice(["allowed", "denied", "failed"]),
    default=None,
    help="Only calls with this outcome.",
)
@option(
    "--since",
    variable="AUDIT_SINCE",
    default="",
    help="Only entries at or after this time (RFC 3339, UTC).",
)
@option("--until", variable="AUDIT_UNTIL", default="", help="Only entries before this time (RFC 3339, UTC).")
@key_file_option
@option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def show(data_dir: Path, encryption_key_file: Path | None, as_json: bool, **wanted: str | None) -> None:
    """Print entries of the audit log, oldest first, without verifying them (see `verify`)."""
    from memory_service.audit.verification import entries

    key = key_of(data_dir, encryption_key_file, needed=False)
    with _reading(data_dir) as folder:
        for line in entries(folder, key):
            if line.sealed:
                raise CommandError(
                    f"entry {line.sequence} is sealed: pass the key with --encryption-key-file or"
                    " MEMORY_SERVICE_ENCRYPTION_KEY"
                )
            if _is_wanted(line, wanted):
                output.tell(output.visible(_json(line)) if as_json else _text(line))


@contextmanager
def _reading(data_dir: Path) -> Iterator[Path]:
    try:
        yield data_dir / "audit"
    except FileNotFoundError:
        raise CommandError(f"there is no audit log in {data_dir}") from None
    except OSError as error:
        raise CommandError(str(error)) from None


def _is_wanted(line: Line, wanted: dict[str, Any]) -> bool:
    name = line.rpc.rpartition("/")[2]
    return (
        (not wanted["rpc"] or wanted["rpc"] in (name, line.rpc))
        and all(not wanted[key] or wanted[key] == getattr(line, key) for key in _EQUAL)
        and (not wanted["wanted_id"] or wanted["wanted_id"] in line.ids)
        and (not wanted["since"] or line.time >= wanted["since"])
        and (not wanted["until"] or line.time < wanted["until"])
    )


_EQUAL = ("caller", "credential", "namespace", "decision")


def _json(line: Line) -> str:
    import msgspec

    return msgspec.json.encode(line).decode()


def _text(line: Line) -> str:
    who = line.caller or "-"
    what = line.rpc.rpartition("/")[2] or f"({line.event})"
    parts = [line.time, f"{line.sequence:>8}", who, what, line.namespace]
    if line.rpc:
        parts.append("begins" if line.event == "intent" else f"{line.decision} {line.code}")
    if line.ids:
        more = f" and {line.id_count - len(line.ids)} more" if line.id_count > len(line.ids) else ""
        parts.append(", ".join(line.ids) + more)
    parts += [f"{name} {value}" for name, value in line.parameters.items()]
    if line.count:
        parts.append(str(line.count))
    if line.server:
        parts.append(f"by {line.server}")
    if line.at_start:
        parts.append("found at start")
    if line.principal:
        parts.append(f"of {line.principal}")
    parts += [
        f"{name} {' -> '.join(each[name] for each in (line.before, line.after) if name in each)}"
        for name in {**line.before, **line.after}
    ]
    return rendering.one_line("  ".join(part for part in parts if part))
