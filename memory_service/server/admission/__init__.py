"""All that decides when a call runs, but for the budget of bytes."""
