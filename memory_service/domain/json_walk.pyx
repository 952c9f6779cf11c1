# cython: language_level=3
# distutils: language = c++
"""What a JSON value is like, however many values it holds: see `json_walk.pyi`.

In Python each value takes a tenth of a microsecond, and a request may hold hundreds of thousands.
"""

from libc.math cimport isfinite


def depth(value):
    """Return how many levels a value has, -1 where a number in it is not finite."""
    return _depth(value)


cdef int _depth(object value) except -2:
    cdef int found, deepest = 0
    cdef object kind = type(value)
    if kind is float:
        return 0 if isfinite(<double>value) else -1
    if kind is dict:
        for held in (<dict>value).values():
            found = _depth(held)
            if found < 0:
                return -1
            if found > deepest:
                deepest = found
        return deepest + 1
    if kind is list:
        for held in <list>value:
            found = _depth(held)
            if found < 0:
                return -1
            if found > deepest:
                deepest = found
        return deepest + 1
    return 0
