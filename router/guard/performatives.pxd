import cython

from router.guard.value_check cimport end_of
from router.guard.guard_constants cimport ABSENT, WRONG

cdef extern from *:  # -1 and -2 are WRONG and ABSENT
    """
    #include <arpa/inet.h>
    #include <string.h>
    static inline Py_ssize_t size_at(const unsigned char *data, Py_ssize_t at) {
        uint32_t value;
        memcpy(&value, data + at, 4);
        return (Py_ssize_t)ntohl(value);
    }
    static inline Py_ssize_t width_of_uint(const unsigned char *data, Py_ssize_t at) {
        return data[at] == 0x52 ? 2 : data[at] == 0x70 ? 5 : 1;
    }
    static inline Py_ssize_t read_uints(
            const unsigned char *data, Py_ssize_t at, Py_ssize_t stop, int count, Py_ssize_t *values) {
        for (int index = 0; index < count; index++) {
            if (at >= stop)
                return -1;
            unsigned char code = data[at];
            if (code == 0x70 && at + 5 <= stop) {
                values[index] = size_at(data, at + 1);
                at += 5;
            } else if (code == 0x52 && at + 2 <= stop) {
                values[index] = data[at + 1];
                at += 2;
            } else if (code == 0x40 || code == 0x43) {
                values[index] = code == 0x43 ? 0 : -2;
                at += 1;
            } else
                return -1;
        }
        return at;
    }
    """
    Py_ssize_t size_at(const unsigned char *data, Py_ssize_t at) noexcept
    Py_ssize_t width_of_uint(const unsigned char *data, Py_ssize_t at) noexcept
    Py_ssize_t read_uints(
        const unsigned char *data, Py_ssize_t at, Py_ssize_t stop, int count, Py_ssize_t *values) noexcept


cdef class PerformativeReader:
    cdef Py_ssize_t at
    cdef Py_ssize_t stop
    cdef Py_ssize_t uints[8]

    @cython.locals(code=Py_ssize_t, kind=Py_ssize_t, count=Py_ssize_t)
    cdef Py_ssize_t begin_list(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t end) noexcept
    @cython.locals(at=Py_ssize_t, space=Py_ssize_t, code=Py_ssize_t)
    cdef Py_ssize_t read_uint(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t, space=Py_ssize_t, code=Py_ssize_t)
    cdef Py_ssize_t read_bool(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t, kind=Py_ssize_t)
    cdef bint pass_field(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t read_ushort(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t read_ubyte(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef Py_ssize_t size_of_binary(self, const unsigned char *data) noexcept
    @cython.locals(at=Py_ssize_t)
    cdef bytes read_name(self, const unsigned char *data)
    @cython.locals(name=bytes)
    cdef bint has_nul(self, const unsigned char *data)
    cdef bint is_list_over(self, const unsigned char *data) noexcept
