"""Decisions about the wording, importance and relations of memories, by a language model or rules."""
