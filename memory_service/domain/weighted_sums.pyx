# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Scores as weighted sums of columns, and their order."""

from libcpp.algorithm cimport partial_sort, sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

ctypedef pair[double, long long] Scored


def best_of(list scores not None):
    """Return the highest of some scores; 1.0 where none is above 0. None is no score."""
    cdef double best = 0, value
    for score in scores:
        if score is not None:
            value = score
            if value > best:
                best = value
    return best if best > 0 else 1.0


def descending(list positions not None, list columns not None, list raised, double whole, Py_ssize_t limit):
    """Return pairs of score and position, the best first, of equal ones the higher position first; the best `limit`.

    A score is the sum of max(value, least) / scale * weight over columns of (values, scale, weight, least),
    times what it is raised by, if anything, and divided by `whole`. A value of None counts nothing.
    """
    cdef Py_ssize_t count = len(positions), i
    cdef vector[double] sums
    cdef vector[Scored] scored
    cdef double scale, weight, least, value
    cdef list values, order
    sums.resize(count, 0.0)
    for values, scale, weight, least in columns:
        if len(values) != count:
            raise ValueError("columns differ in length")
        for i in range(count):
            if values[i] is not None:
                value = values[i]
                sums[i] += (value if value > least else least) / scale * weight
    scored.reserve(count)
    for i in range(count):
        if raised is not None:
            sums[i] = sums[i] * <double>raised[i] / whole
        # Negated: sorted ascending, the best come first.
        scored.push_back(Scored(-sums[i], -<long long>positions[i]))
    if limit < count:
        partial_sort(scored.begin(), scored.begin() + limit, scored.end())
        count = limit
    else:
        sort(scored.begin(), scored.end())
    order = [None] * count
    for i in range(count):
        order[i] = (-scored[i].first, -scored[i].second)
    return order
