"""Decides by rules: English grammar, lists of words, and what vectors tell."""
