"""Authentication and authorisation of every call."""
