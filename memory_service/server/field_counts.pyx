# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""How many fields an encoded protobuf message has, at any level, counted without decoding it: see `field_counts.pyi`.

Protobuf's own parser takes some 100 ns and up to 400 bytes for each, so what is too much has to be known before. In
Python this would take longer than the parser does.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

# What a field of a type holds, by its number: a type's index for a message, or one of these.
cdef int32_t _PLAIN = -1
cdef int32_t _PACKED = -2
# As deep as protobuf's parser goes: what is deeper it refuses.
cdef size_t _DEPTH_MAX = 100

# An entry of a map is looked up when it is decoded, and sorted when it is digested, which takes as long as so many
# fields do.
cdef int64_t _MAP_ENTRY = 3

PLAIN = _PLAIN
PACKED = _PACKED


cdef struct Frame:
    int32_t type
    int32_t number
    int64_t end


cdef class FieldCounter:
    """Counts fields of messages of some types.

    `types[i][n]` is what field n of type i holds, `maps[i]` whether type i is an entry of a map.
    """

    cdef vector[vector[int32_t]] _types
    cdef vector[bint] _maps

    def __init__(self, types, maps):
        self._types = types
        self._maps = maps

    def count(self, const unsigned char[::1] raw, int32_t root, int64_t most, int64_t longest):
        """Return (count, path, index, nbytes): the path is empty if a message of type `root` has at most `most`, and
        none that is no message has more than `longest` bytes.

        Otherwise it has more, or one of `nbytes`, found where the numbers of fields lead, in entry `index` of the
        first of them, and is not looked at any further. Bytes that are no message are counted up to there.
        """
        cdef int64_t position = 0, size = raw.shape[0], count = 0, entry = -1
        cdef uint64_t tag = 0, length = 0
        cdef int32_t number = 0, held, outer = 0
        cdef vector[Frame] stack
        stack.push_back(Frame(root, 0, size))
        while True:
            while stack.size() and position >= stack.back().end:
                stack.pop_back()
            if not stack.size() or not _varint(&raw[0], size, &position, &tag):
                return count, (), 0, 0
            number = <int32_t>(tag >> 3)
            if stack.size() == 1:
                entry = entry + 1 if number == outer else 0
                outer = number
            count += 1
            if count > most:
                return count, _path(&stack, number), entry, 0
            if tag & 7 == 0:
                if not _varint(&raw[0], size, &position, &length):
                    return count, (), 0, 0
            elif tag & 7 == 1:
                position += 8
            elif tag & 7 == 5:
                position += 4
            elif tag & 7 == 2:
                if not _varint(&raw[0], size, &position, &length) or length > <uint64_t>(size - position):
                    return count, (), 0, 0
                held = self._held(stack.back().type, number)
                if held >= 0 and stack.size() < _DEPTH_MAX:
                    if self._maps[held]:
                        count += _MAP_ENTRY
                    stack.push_back(Frame(held, number, position + <int64_t>length))
                    continue
                if <int64_t>length > longest:
                    return count, _path(&stack, number), entry, length
                if held == _PACKED:
                    # Each number in it takes a byte at least.
                    count += <int64_t>length
                    if count > most:
                        return count, _path(&stack, number), entry, 0
                position += <int64_t>length

    cdef int32_t _held(self, int32_t type, int32_t number) noexcept:
        cdef vector[int32_t]* fields = &self._types[type]
        return fields[0][number] if 0 < number < <int32_t>fields.size() else _PLAIN


cdef tuple _path(vector[Frame]* stack, int32_t number):
    return (*[stack[0][at].number for at in range(1, stack.size())], number)


cdef bint _varint(const unsigned char* raw, int64_t size, int64_t* position, uint64_t* value) noexcept:
    cdef int shift = 0
    cdef unsigned char byte
    value[0] = 0
    while position[0] < size and shift < 64:
        byte = raw[position[0]]
        position[0] += 1
        value[0] |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            return True
        shift += 7
    return False
