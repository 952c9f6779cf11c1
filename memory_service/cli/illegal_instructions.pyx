# cython: language_level=3
# distutils: language = c++
"""Handles instructions that this processor lacks: a line on stderr and exit code 1."""

cdef extern from "illegal_instructions.hpp" namespace "illegal_instructions" nogil:
    void report() noexcept


def report_illegal_instructions():
    """From now on, report the file with an illegal instruction before this process ends."""
    report()
