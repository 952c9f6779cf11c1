"""The most expensive valid requests of every RPC, by service."""
