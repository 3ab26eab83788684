# The numbers of states.py, as compiled modules know them: a test compares the two.

cdef enum:
    NEW = 0
    HOLDING = 1
    WAITING = 2
    STREAMING = 3
    SENT = 4
    DONE = 5
    STRANDED = 6
    QUEUED = 7
    STREAM_BUFFER_BYTES = 1048576
    PIECE_BYTES = 32672
