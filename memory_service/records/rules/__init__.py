"""Rules of the store contract that do not depend on where records are kept.

Each is a function of what was found that returns what is to be done, or raises why not: a store finds, asks,
and applies. None reads, writes, or knows the time.
"""
