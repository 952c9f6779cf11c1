"""Fields of protobuf's wire format, by hand: for what no library would write, or not so quickly."""

from __future__ import annotations


def field_of(number: int, data: bytes) -> bytes:
    """A field of bytes; its number is below 16."""
    length, head = len(data), bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + data
