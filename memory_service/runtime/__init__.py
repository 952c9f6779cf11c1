"""The ground floor: what all parts of a server stand on while they run, and that knows none of them."""
