"""The fields of requests that the table of permissions checks, compared with the descriptors."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

from grpc_api import METHODS, path
from memory_service.server.methods import SERVED

# Fields with names for which no writer is looked up: content to write, the server's own fields, and the
# object of the method itself.
NOT_LOOKED_UP = frozenset(
    ("id", "request_id", "session_id", "credential_id", "message_id", "tool_call_id", "source_item_id")
)


def named_things(message: Descriptor, seen: tuple[str, ...] = ()) -> set[str]:
    """Return the names of all fields of a request, at any depth, that name something stored."""
    found = {field.name for field in message.fields if field.name.endswith(("_id", "_ids", "id"))}
    for field in message.fields:
        inner = field.message_type
        if inner is not None and inner.full_name not in seen and not inner.full_name.startswith("google."):
            found |= named_things(inner, (*seen, inner.full_name))
    return found - NOT_LOOKED_UP


def test_what_a_writer_names_of_what_is_stored_needs_read_wherever_it_stands() -> None:
    """A new field that names items is in the table, or its method needs `read` anyway."""
    looked_at = {"parent_ids", "interaction_ids"}
    # The server sets the provenance of a document and ignores the caller's.
    output_only = {"AddDocument": {"parent_ids"}}
    for method in METHODS:
        permission = SERVED[path(method)]
        if {role.value for role in permission.roles} & {"read", "admin"}:
            continue
        named = named_things(method.input_type) - output_only.get(method.name, set())
        assert named <= looked_at, (method.name, named)
        assert not named or permission.added is not None, method.name
