# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Inner products with some rows of a matrix, without copying them first, and rows at length 1."""

import numpy as np

from libc.math cimport fabs, rintf, sqrt
from libc.stdint cimport int32_t

cdef extern from "../prefetch.hpp" nogil:
    void prefetch_vector(const float* vector, Py_ssize_t length) noexcept

cdef extern from "inner_product.hpp" namespace "inner_product" nogil:
    ctypedef float (*Product)(const float* one, const float* other, int length) noexcept
    Product fastest() noexcept

cdef enum:
    _AHEAD = 3

cdef Product _product = fastest()


def unit_rows(const float[:, ::1] vectors):
    """Return each row at length 1, in a new array. Rows are finite and not zero.

    The result for a row is the same to the last bit, whatever the other rows.
    """
    out = np.empty((vectors.shape[0], vectors.shape[1]), np.float32)
    cdef float[:, ::1] units = out
    cdef Py_ssize_t i
    for i in range(vectors.shape[0]):
        _scale(&vectors[i, 0], &units[i, 0], vectors.shape[1])
    return out


cdef void _scale(const float* vector, float* unit, Py_ssize_t length) noexcept nogil:
    cdef float square = _product(vector, vector, <int>length), share
    cdef double most = 0, sum = 0
    cdef Py_ssize_t i
    if 1e-30 < square < 1e30:
        share = <float>(1 / sqrt(<double>square))
        for i in range(length):
            unit[i] = vector[i] * share
        return
    # Scale first: the squares of very large or very small values leave the range of floats, and of doubles.
    for i in range(length):
        most = max(most, fabs(vector[i]))
    for i in range(length):
        sum += (vector[i] / most) * (vector[i] / most)
    for i in range(length):
        unit[i] = <float>(vector[i] / most / sqrt(sum))


def inner_products(const float[:, ::1] matrix, const int32_t[::1] rows, const float[::1] query):
    """Return the inner product of a query with each of some rows of a matrix, shape (len(rows),)."""
    out = np.empty(rows.shape[0], np.float32)
    cdef float[::1] products = out
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        products[i] = _product(&matrix[rows[i], 0], &query[0], query.shape[0])
    return out


def scores_of_rows(
    const int32_t[::1] rows,
    const int32_t[::1] row_slot,
    const int32_t[::1] slot_label,
    const float[:, ::1] labelled,
    const float[:, ::1] others,
    const float[::1] query,
):
    """Return the inner product of a query with the vector of each row, to six digits; None if it has none.

    The vector of a slot is that of its label, or for slots beyond `slot_label` the next in `others`, in
    order.
    """
    cdef list products = [None] * rows.shape[0]
    cdef Py_ssize_t i, ahead, slot, labels = slot_label.shape[0]
    cdef const float* vector
    for i in range(rows.shape[0]):
        if i + _AHEAD < rows.shape[0]:
            # Rows lie far apart: prefetch a later one while this one is summed.
            ahead = row_slot[rows[i + _AHEAD]]
            if ahead >= labels:
                prefetch_vector(&others[ahead - labels, 0], query.shape[0])
            elif ahead >= 0:
                prefetch_vector(&labelled[slot_label[ahead], 0], query.shape[0])
        slot = row_slot[rows[i]]
        if slot < 0:
            continue
        vector = &labelled[slot_label[slot], 0] if slot < labels else &others[slot - labels, 0]
        # Rounded as numpy does: in floats.
        products[i] = rintf(_product(vector, &query[0], query.shape[0]) * <float>1e6) / <float>1e6
    return products
