"""Types of the compiled module."""

from memory_service.data_model import Json

def depth(value: Json) -> int:
    """Return the depth of a JSON value: 0 for a number or a text, 1 for an empty list.

    -1: a number in it is not finite. A value may be as deep as a protobuf message, about a hundred levels.
    """
