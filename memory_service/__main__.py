"""`python -m memory_service` is `memory-service`."""

from __future__ import annotations

from memory_service.cli import main

if __name__ == "__main__":
    main(prog_name="memory-service")
