"""The behaviour required of every store. The cases know a store only by its capabilities."""
