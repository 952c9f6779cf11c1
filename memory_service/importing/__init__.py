"""Reads chat logs and records from files, as items and state entries to import, and operations."""

from __future__ import annotations

from memory_service.importing.reading import BadRecord, Format, read_operations, read_placed, read_records

__all__ = ["BadRecord", "Format", "read_operations", "read_placed", "read_records"]
