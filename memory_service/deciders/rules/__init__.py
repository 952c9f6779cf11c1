"""Decides by rules: English grammar, lists of words, and similarity of vectors."""
