# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Scores as weighted sums of columns, and their order."""

from libc.math cimport rint
from libcpp.algorithm cimport lower_bound, partial_sort, sort
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


ctypedef pair[long long, Py_ssize_t] Place


def relevances(list wanted not None, list positions not None, list shares, list cosines, double unrelated, double related):
    """Return the relevance of each wanted position, to four digits; -1.0 if `positions` lacks it.

    It is the mean of an item's entry in `shares` and its cosine on a scale from `unrelated` to `related`, or the
    one that there is; either list may be None, and a cosine, too.
    """
    cdef vector[Place] places
    cdef Py_ssize_t i, at
    cdef long long position
    cdef double value, similarity
    cdef list found = [-1.0] * len(wanted)
    if shares is not None and len(shares) != len(positions) or cosines is not None and len(cosines) != len(positions):
        raise ValueError("columns differ in length")
    places.reserve(len(positions))
    for i in range(<Py_ssize_t>len(positions)):
        places.push_back(Place(positions[i], i))
    sort(places.begin(), places.end())
    for i in range(<Py_ssize_t>len(wanted)):
        position = wanted[i]
        at = lower_bound(places.begin(), places.end(), Place(position, 0)) - places.begin()
        if at == <Py_ssize_t>places.size() or places[at].first != position:
            continue
        at = places[at].second
        value = 0.0 if shares is None else shares[at]
        if cosines is not None and cosines[at] is not None:
            similarity = min(max((<double>cosines[at] - unrelated) / (related - unrelated), 0.0), 1.0)
            value = similarity if shares is None else (value + similarity) / 2
        found[i] = rint(value * 10_000) / 10_000
    return found
