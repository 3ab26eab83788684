import cython

from router.guard.guard_constants cimport ACCEPTED, MODIFIED, REJECTED, RELEASED, WRONG
from router.guard.value_check cimport end_of, number_at

cdef int EMPTY_LIST
cdef int CHAR


@cython.locals(kind=Py_ssize_t)
cpdef Py_ssize_t code_of(bytes state, Py_ssize_t stop) except? -2
@cython.locals(stop=Py_ssize_t, code=Py_ssize_t, right=bytes, found=list)
cpdef bytes usual_form(bytes state)
@cython.locals(at=Py_ssize_t, code=Py_ssize_t, kind=Py_ssize_t, width=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t,
               count=Py_ssize_t, end=Py_ssize_t, after=Py_ssize_t, right=bytes, _=Py_ssize_t)
cpdef bytes readable_part(bytes state)
@cython.locals(first=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t)
cpdef bytes with_code(bytes state, Py_ssize_t at, Py_ssize_t code)
@cython.locals(filling=Py_ssize_t, length=object)
cpdef bytes written(Py_ssize_t code, bytes fields, Py_ssize_t count, Py_ssize_t size)
@cython.locals(at=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t, kind=Py_ssize_t, name=bytes)
cpdef bytes with_symbol(bytes state)
@cython.locals(at=Py_ssize_t, end=Py_ssize_t, code=Py_ssize_t)
cpdef bytes with_text(bytes state, list found)
cpdef bint is_all_text(list found) except -1
@cython.locals(found=list)
cpdef list unreadable(bytes data, Py_ssize_t at)
@cython.locals(code=Py_ssize_t)
cdef Py_ssize_t look_at_value(bytes data, Py_ssize_t at, list found) except? -2
@cython.locals(kind=Py_ssize_t, width=Py_ssize_t, end=Py_ssize_t, count=Py_ssize_t, is_map=bint, index=Py_ssize_t,
               _=Py_ssize_t)
cdef Py_ssize_t look_at_content(bytes data, Py_ssize_t at, Py_ssize_t code, list found) except? -2
cpdef bint is_unicode(Py_ssize_t number)
cpdef bint is_text(bytes text, Py_ssize_t code) except -1
@cython.locals(kind=Py_ssize_t, width=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t, _=Py_ssize_t)
cpdef tuple fields_of(bytes state, Py_ssize_t at)
@cython.locals(at=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, code=Py_ssize_t, outcome=bytes, flags=list)
cpdef tuple default_outcome(bytes source)
