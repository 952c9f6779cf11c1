# cython: language_level=3
# distutils: language = c++
"""What happens at an instruction that this processor does not have: a line on stderr and exit code 1."""

cdef extern from "illegal_instructions.hpp" namespace "illegal_instructions" nogil:
    void report() noexcept


def report_illegal_instructions():
    """From now on end this process with a line that names the file, instead of by SIGILL alone."""
    report()
