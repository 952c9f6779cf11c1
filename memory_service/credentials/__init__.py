"""Permissions of credentials, API keys, and their storage. Independent of gRPC."""
