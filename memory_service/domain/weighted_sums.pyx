# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Scores as weighted sums of columns, and their order."""

from libcpp.algorithm cimport partial_sort, sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

ctypedef pair[double, long long] Scored


def best_of(list scores not None):
    """Return the highest score; 1.0 if none is above 0. None does not count."""
    cdef double best = 0, value
    for score in scores:
        if score is not None:
            value = score
            if value > best:
                best = value
    return best if best > 0 else 1.0


def descending(list positions not None, list columns not None, list raised, double whole, Py_ssize_t limit):
    """Return the best `limit` pairs of score and position, the best first; of equal ones the higher position
    first.

    A score is the sum of max(value, least) / scale * weight over columns of (values, scale, weight, least),
    times its factor in `raised` divided by `whole`, unless `raised` is None. Values of None are skipped.
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
        # Negated: ascending order puts the best first.
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
