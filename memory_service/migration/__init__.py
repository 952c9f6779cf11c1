"""Copies records from one store to another."""
