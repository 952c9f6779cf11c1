# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Rows of a matrix in 8 bits per value, for finding those nearest to a query: quantized_scan.hpp."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t
from libcpp.memory cimport unique_ptr
from libcpp.pair cimport pair
from libcpp.vector cimport vector

cdef extern from "quantized_scan.hpp" namespace "quantized_scan" nogil:
    const int kFewRows
    cdef cppclass Codes:
        Codes(int dimension) except +
        void append(const float* vector) except +
        int64_t count()
        int64_t bytes()
    cdef struct Kernel:
        const char* name
    vector[Kernel] kernels()
    vector[vector[pair[float, int64_t]]] nearest(
        const Codes& codes, const float* matrix, const uint8_t* live, int64_t rows, const float* queries,
        int count, size_t k, const float* over, const Kernel& kernel
    ) except +

KERNELS = tuple(each.name.decode() for each in kernels())


cdef class QuantizedRows:
    """The codes of the rows of a matrix, which is kept elsewhere and only grows.

    Methods hold the GIL throughout, so several threads may call them.
    """

    cdef unique_ptr[Codes] _codes
    cdef Kernel _kernel
    cdef int _dimension

    def __init__(self, int dimension, str kernel=KERNELS[0]):
        self._dimension = dimension
        self._codes.reset(new Codes(dimension))
        self._kernel = kernels()[KERNELS.index(kernel)]

    @property
    def nbytes(self):
        """Memory taken."""
        return self._codes.get().bytes()

    def encode(self, const float[:, ::1] matrix):
        """Make the missing codes; rows are unit vectors. Usually few codes are missing."""
        cdef Py_ssize_t row
        self._check(matrix)
        if matrix.shape[0] <= kFewRows:
            return
        for row in range(self._codes.get().count(), matrix.shape[0]):
            self._codes.get().append(&matrix[row, 0])

    def nearest(
        self,
        const float[:, ::1] matrix,
        const uint8_t[::1] live,
        const float[:, ::1] queries,
        Py_ssize_t k,
        const float[::1] over,
    ):
        """Return for each query the numbers and inner products of the k best rows of the matrix, best first.

        Only live rows count, with a product larger than the query's value in `over`. Queries are unit
        vectors.
        """
        cdef vector[vector[pair[float, int64_t]]] found
        cdef Py_ssize_t count = queries.shape[0], rows = matrix.shape[0]
        self._check(queries)
        if live.shape[0] != rows or over.shape[0] != count:
            raise ValueError("arrays of different lengths")
        self.encode(matrix)
        if count and k > 0 and rows:
            found = nearest(
                self._codes.get()[0], &matrix[0, 0], &live[0], rows, &queries[0, 0], count, k, &over[0],
                self._kernel,
            )
        else:
            found.resize(count)
        return _arrays(found)

    cdef int _check(self, const float[:, ::1] vectors) except -1:
        if vectors.shape[1] != self._dimension:
            raise ValueError(f"vectors of {vectors.shape[1]} values in the place of {self._dimension}")
        return 0


cdef list _arrays(const vector[vector[pair[float, int64_t]]]& found):
    # Two arrays for all queries: creating an array costs more than filling it.
    cdef size_t total = 0, at = 0, query, i
    for query in range(found.size()):
        total += found[query].size()
    all_numbers, all_products = np.empty(total, np.int64), np.empty(total, np.float32)
    cdef int64_t[::1] numbers = all_numbers
    cdef float[::1] products = all_products
    answers = []
    for query in range(found.size()):
        for i in range(found[query].size()):
            products[at + i], numbers[at + i] = found[query][i].first, found[query][i].second
        ends = slice(at, at + found[query].size())
        answers.append((all_numbers[ends], all_products[ends]))
        at += found[query].size()
    return answers
