"""The command line: `memory-service`."""

from __future__ import annotations

import click

from memory_service import __version__
from memory_service.cli.illegal_instructions import report_illegal_instructions
from memory_service.cli.lazy import LazyGroup

_ITEMS = "memory_service.cli.items"
_ADMIN = "memory_service.cli.admin"
_BACKUPS = "memory_service.cli.backups"


@click.group(
    cls=LazyGroup,
    commands_at={
        "serve": "memory_service.cli.serve:serve",
        "health": f"{_ADMIN}:health",
        "audit": "memory_service.cli.audit:audit",
        "add": f"{_ITEMS}:add",
        "retrieve": f"{_ITEMS}:retrieve",
        "list": f"{_ITEMS}:list_items",
        "labels": f"{_ITEMS}:labels",
        "get": f"{_ITEMS}:get",
        "versions": "memory_service.cli.versions:versions",
        "redact": "memory_service.cli.versions:redact",
        "delete": f"{_ITEMS}:delete",
        "delete-where": f"{_ITEMS}:delete_where",
        "write": "memory_service.cli.writing:write",
        "reset": f"{_ITEMS}:reset",
        "state": "memory_service.cli.state:state",
        "memories": "memory_service.cli.memories:memories",
        "documents": "memory_service.cli.documents:documents",
        "sessions": "memory_service.cli.sessions:sessions",
        "files": "memory_service.cli.files:files",
        "import": "memory_service.cli.importing:import_file",
        "export": "memory_service.cli.exporting:export",
        "watch": "memory_service.cli.watch:watch",
        "stats": f"{_ADMIN}:stats",
        "namespaces": f"{_ADMIN}:namespaces",
        "settings": f"{_ADMIN}:settings",
        "reembed": "memory_service.cli.reembedding:reembed",
        "undo": "memory_service.cli.undo:undo",
        "quarantine": "memory_service.cli.quarantine:quarantine",
        "flush": f"{_ADMIN}:flush",
        "backup": f"{_BACKUPS}:backup",
        "restore": f"{_BACKUPS}:restore",
        "rekey": f"{_BACKUPS}:rekey",
        "migrate": "memory_service.cli.migrate:migrate",
        "keys": "memory_service.cli.keys:keys",
        "mcp": "memory_service.cli.mcp:mcp",
        "hook": "memory_service.cli.hook:hook",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """A memory server for AI agents.

    Start it with `memory-service serve`; most other commands call it. Each option can also be set by the
    environment variable in its help.
    """
    report_illegal_instructions()
