"""Decides when a call runs, except for the byte budget."""
