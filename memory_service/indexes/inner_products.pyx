# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Inner products with some rows of a matrix, without copying them out first."""

import numpy as np

from libc.math cimport rintf
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

cdef extern from *:
    """
    static inline void prefetch(const float* vector, Py_ssize_t length) {
        for (Py_ssize_t i = 0; i < length; i += 16) __builtin_prefetch(vector + i);
    }
    """
    void prefetch(const float* vector, Py_ssize_t length) noexcept nogil

cdef extern from "quantized_scan.hpp" namespace "quantized_scan" nogil:
    ctypedef float (*Product)(const float* one, const float* other, int length) noexcept
    cdef struct Kernel:
        Product multiply
    vector[Kernel] kernels()

cdef enum:
    _AHEAD = 3

cdef Product _product = kernels()[0].multiply


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
    """Return the inner product of a query with the vector of each row, to six digits; None: it has none.

    The vector of a slot is the one of its label, or for slots beyond `slot_label` in `others`, in their order.
    """
    cdef list products = [None] * rows.shape[0]
    cdef Py_ssize_t i, ahead, slot, labels = slot_label.shape[0]
    cdef const float* vector
    for i in range(rows.shape[0]):
        if i + _AHEAD < rows.shape[0]:
            # They lie far apart: what comes later is asked for while this one is summed.
            ahead = row_slot[rows[i + _AHEAD]]
            if 0 <= ahead < labels:
                prefetch(&labelled[slot_label[ahead], 0], query.shape[0])
        slot = row_slot[rows[i]]
        if slot < 0:
            continue
        vector = &labelled[slot_label[slot], 0] if slot < labels else &others[slot - labels, 0]
        # As numpy rounds: in floats.
        products[i] = rintf(_product(vector, &query[0], query.shape[0]) * <float>1e6) / <float>1e6
    return products
