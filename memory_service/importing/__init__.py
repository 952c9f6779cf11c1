"""Reads chat logs and records from files, as items and state entries to import."""

from __future__ import annotations

from memory_service.importing.reading import BadRecord, Format, read_records

__all__ = ["BadRecord", "Format", "read_records"]
