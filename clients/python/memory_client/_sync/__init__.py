"""The synchronous transport and the methods over it; the same as in `_aio`, without await."""
