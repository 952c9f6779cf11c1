"""Runtime services that every part of the server uses, and that depend on none of them."""
