"""The asynchronous transport and the methods over it; the same as in `_sync`, with await."""
