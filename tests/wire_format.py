"""Fields of protobuf's wire format by hand: for data that no library writes, or not as fast."""

from __future__ import annotations


def field_of(number: int, data: bytes) -> bytes:
    """Return a field of bytes; its number is below 16."""
    length, head = len(data), bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + data
