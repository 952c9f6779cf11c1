"""Who may call: what a credential grants, API keys, and the file of keys. Nothing here knows gRPC."""
