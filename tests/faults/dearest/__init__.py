"""The dearest valid requests of every RPC, by service."""
