# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""google.protobuf.Struct and Value as JSON values, from their bytes and back: see `json_values.pyi`.

Through protobuf's Python classes each value takes a microsecond, and a request may hold hundreds of thousands, which
would keep the event loop for most of a second. Here it takes a twentieth of that.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp.string cimport string

# Below it every whole number is one of floating point, too.
cdef double _WHOLE_MAX = 9007199254740992.0

WHOLE_MAX = _WHOLE_MAX


cdef struct Bytes:
    const char* at
    const char* end


def decoded_struct(bytes raw):
    """Return the JSON object of an encoded Struct."""
    return _struct(_of(raw))


def decoded_value(bytes raw):
    """Return the JSON value of an encoded Value."""
    return _value(_of(raw))


def encoded_struct(dict value):
    """Return a JSON object as an encoded Struct."""
    cdef string out
    _write_struct(value, &out)
    return <bytes>out


def encoded_value(value):
    """Return a JSON value as an encoded Value."""
    cdef string out
    _write_value(value, &out)
    return <bytes>out


cdef Bytes _of(bytes raw):
    cdef const char* at = PyBytes_AS_STRING(raw)
    return Bytes(at, at + PyBytes_GET_SIZE(raw))


cdef uint64_t _varint(Bytes* data) except? 0:
    cdef uint64_t value = 0, byte
    cdef int shift = 0
    while data.at < data.end and shift < 64:
        byte = <unsigned char>data.at[0]
        data.at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise ValueError("is not encoded as protobuf encodes it")


cdef Bytes _inner(Bytes* data) except *:
    cdef uint64_t length = _varint(data)
    if length > <uint64_t>(data.end - data.at):
        raise ValueError("is not encoded as protobuf encodes it")
    cdef Bytes found = Bytes(data.at, data.at + length)
    data.at = found.end
    return found


cdef int _skip(Bytes* data, uint64_t tag) except -1:
    cdef int64_t size = 0
    if tag & 7 == 0:
        _varint(data)
    elif tag & 7 == 2:
        _inner(data)
    else:
        size = 8 if tag & 7 == 1 else 4
        if size > data.end - data.at:
            raise ValueError("is not encoded as protobuf encodes it")
        data.at += size
    return 0


cdef dict _struct(Bytes data):
    cdef dict found = {}
    cdef uint64_t tag
    while data.at < data.end:
        tag = _varint(&data)
        if tag == 0x0A:
            _entry(_inner(&data), found)
        else:
            _skip(&data, tag)
    return found


cdef int _entry(Bytes data, dict found) except -1:
    cdef str key = ""
    cdef Bytes text, value = Bytes(data.at, data.at)
    cdef uint64_t tag
    while data.at < data.end:
        tag = _varint(&data)
        if tag == 0x0A:
            text = _inner(&data)
            key = PyUnicode_DecodeUTF8(text.at, text.end - text.at, NULL)
        elif tag == 0x12:
            value = _inner(&data)
        else:
            _skip(&data, tag)
    found[key] = _value(value)
    return 0


cdef list _list(Bytes data):
    cdef list found = []
    cdef uint64_t tag
    while data.at < data.end:
        tag = _varint(&data)
        if tag == 0x0A:
            found.append(_value(_inner(&data)))
        else:
            _skip(&data, tag)
    return found


cdef object _value(Bytes data):
    cdef object found = None
    cdef bint is_there = False
    cdef Bytes text
    cdef double number
    cdef uint64_t tag
    while data.at < data.end:
        tag = _varint(&data)
        if tag == 0x08:
            _varint(&data)
            found = None
        elif tag == 0x11 and data.end - data.at >= 8:
            memcpy(&number, data.at, 8)
            data.at += 8
            found = _number(number)
        elif tag == 0x1A:
            text = _inner(&data)
            found = PyUnicode_DecodeUTF8(text.at, text.end - text.at, NULL)
        elif tag == 0x20:
            found = _varint(&data) != 0
        elif tag == 0x2A:
            found = _struct(_inner(&data))
        elif tag == 0x32:
            found = _list(_inner(&data))
        else:
            _skip(&data, tag)
            continue
        is_there = True
    if not is_there:
        raise ValueError("holds a value of no kind")
    return found


cdef object _number(double value):
    # JSON has one kind of number, and 1 reads better than 1.0. A negative zero stays what it is.
    if -_WHOLE_MAX < value < _WHOLE_MAX and value == <double><int64_t>value and (value != 0 or 1 / value > 0):
        return <int64_t>value
    return value


cdef int _write_varint(uint64_t value, string* out) except -1:
    while value > 127:
        out.push_back(<char>(value & 127 | 128))
        value >>= 7
    out.push_back(<char>value)
    return 0


cdef int _write_bytes(char tag, const char* data, size_t size, string* out) except -1:
    out.push_back(tag)
    _write_varint(size, out)
    out.append(data, size)
    return 0


cdef int _write_text(char tag, str text, string* out) except -1:
    cdef Py_ssize_t size = 0
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &size)
    return _write_bytes(tag, data, size, out)


cdef int _write_struct(dict value, string* out) except -1:
    cdef string entry, inner
    for key, held in value.items():
        entry.clear()
        inner.clear()
        _write_text(0x0A, key, &entry)
        _write_value(held, &inner)
        _write_bytes(0x12, inner.data(), inner.size(), &entry)
        _write_bytes(0x0A, entry.data(), entry.size(), out)
    return 0


cdef int _write_list(list values, string* out) except -1:
    cdef string inner
    for held in values:
        inner.clear()
        _write_value(held, &inner)
        _write_bytes(0x0A, inner.data(), inner.size(), out)
    return 0


cdef int _write_value(object value, string* out) except -1:
    cdef string inner
    cdef double number
    if isinstance(value, str):
        _write_text(0x1A, value, out)
    elif isinstance(value, bool):
        out.push_back(0x20)
        out.push_back(1 if value else 0)
    elif isinstance(value, (float, int)):
        number = value
        out.push_back(0x11)
        out.append(<const char*>&number, 8)
    elif value is None:
        out.push_back(0x08)
        out.push_back(0)
    elif isinstance(value, dict):
        _write_struct(value, &inner)
        _write_bytes(0x2A, inner.data(), inner.size(), out)
    else:
        _write_list(value, &inner)
        _write_bytes(0x32, inner.data(), inner.size(), out)
    return 0
