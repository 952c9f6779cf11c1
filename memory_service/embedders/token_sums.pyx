# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Sums of the vectors of tokens."""

import numpy as np

from libc.math cimport sqrt
from libcpp.vector cimport vector

cdef extern from "../prefetch.hpp" nogil:
    void prefetch_vector(const float* vector, Py_ssize_t length) noexcept

cdef enum:
    _AHEAD = 4


def unit_sum(const float[:, ::1] vectors, list words):
    """Return the sum of the vectors of all tokens, at length 1; None where it has no direction.

    Each of the words is a list of its tokens, which are numbers of rows, and valid.
    """
    out = np.zeros(vectors.shape[1], np.float32)
    cdef float[::1] total = out
    cdef const float* row
    cdef Py_ssize_t at, i, token, width = vectors.shape[1]
    cdef double square = 0
    cdef float scale
    cdef list word
    cdef vector[Py_ssize_t] tokens
    for word in words:
        for token in word:
            tokens.push_back(token)
    for at in range(<Py_ssize_t>tokens.size()):
        if at + _AHEAD < <Py_ssize_t>tokens.size():
            # They lie anywhere in many megabytes: what comes later is asked for while this one is added.
            prefetch_vector(&vectors[tokens[at + _AHEAD], 0], width)
        row = &vectors[tokens[at], 0]
        for i in range(width):
            total[i] += row[i]
    for i in range(width):
        square += <double>total[i] * total[i]
    if square == 0:
        return None
    scale = <float>(1 / sqrt(square))
    for i in range(width):
        total[i] *= scale
    return out
