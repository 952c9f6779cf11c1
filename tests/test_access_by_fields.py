"""What the table of permissions looks at in requests: every field, as the descriptors tell."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

from grpc_api import METHODS, path
from memory_service.server.methods import SERVED

# What a request holds of names and is not looked up for its writer: what is written, the server's own fields,
# and the thing itself that a method is about.
NOT_LOOKED_UP = frozenset(
    ("id", "request_id", "session_id", "credential_id", "message_id", "tool_call_id", "source_item_id")
)


def named_things(message: Descriptor, seen: tuple[str, ...] = ()) -> set[str]:
    """The names of all fields of a request, however deep, that name something that is stored."""
    found = {field.name for field in message.fields if field.name.endswith(("_id", "_ids", "id"))}
    for field in message.fields:
        inner = field.message_type
        if inner is not None and inner.full_name not in seen and not inner.full_name.startswith("google."):
            found |= named_things(inner, (*seen, inner.full_name))
    return found - NOT_LOOKED_UP


def test_what_a_writer_names_of_what_is_stored_needs_read_wherever_it_stands() -> None:
    """A new field that names items is looked at by the table, or its method needs `read` anyway."""
    looked_at = {"parent_ids", "interaction_ids"}
    # The provenance of a document is the server's: what a caller puts there is not looked at.
    output_only = {"AddDocument": {"parent_ids"}}
    for method in METHODS:
        permission = SERVED[path(method)]
        if {role.value for role in permission.roles} & {"read", "admin"}:
            continue
        named = named_things(method.input_type) - output_only.get(method.name, set())
        assert named <= looked_at, (method.name, named)
        assert not named or permission.added is not None, method.name
