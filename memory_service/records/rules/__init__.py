"""Rules of the store contract that do not depend on the storage.

Each rule is a pure function of what a store found: it returns what to do, or raises an error. The store
finds, calls the rule, and applies the result. No rule reads, writes or knows the time.
"""
