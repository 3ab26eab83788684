import cython

from router.guard.guard_constants cimport ACCEPTED, MODIFIED, REJECTED, RELEASED, WRONG
from router.guard.value_check cimport end_of, number_at


@cython.locals(kind=Py_ssize_t)
cpdef Py_ssize_t code_of(bytes state, Py_ssize_t stop) except? -2
@cython.locals(stop=Py_ssize_t, code=Py_ssize_t, right=bytes)
cpdef bytes usual_form(bytes state)
@cython.locals(first=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, filling=Py_ssize_t, size=object)
cpdef bytes with_code(bytes state, Py_ssize_t at, Py_ssize_t code)
@cython.locals(at=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t, kind=Py_ssize_t, name=bytes)
cpdef bytes with_symbol(bytes state)
@cython.locals(kind=Py_ssize_t, width=Py_ssize_t, count=Py_ssize_t, first=Py_ssize_t, stop=Py_ssize_t, _=Py_ssize_t)
cpdef tuple fields_of(bytes state, Py_ssize_t at)
@cython.locals(at=Py_ssize_t, stop=Py_ssize_t, count=Py_ssize_t, code=Py_ssize_t, outcome=bytes, flags=list)
cpdef tuple default_outcome(bytes source)
