"""Who calls, and what they may do: credentials in front of every method."""
