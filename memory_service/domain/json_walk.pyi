"""Types of the compiled module."""

from memory_service.data_model import Json

def depth(value: Json) -> int:
    """Return how many levels a JSON value has: 0 for a number or a text, 1 for an empty list.

    -1: a number in it is not finite. It may have as many levels as a protobuf message, about a hundred.
    """
