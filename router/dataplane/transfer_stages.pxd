# The numbers of transfer_stages.py, as compiled modules know them: a test compares the two.

cdef enum:
    NEW = 0
    HOLDING = 1
    WAITING = 2
    STREAMING = 3
    SENT = 4
    DONE = 5
    STRANDED = 6
    QUEUED = 7
    HELD = 0
    GATHERED = 1
    OFFERED = 2
    SELECTED = 3
    POSTPONED = 4
    BEGUN = 5
    WRITTEN = 6
    LOST = 7
    RETRIED = 8
    FINISHED = 9
    STREAM_BUFFER_BYTES = 1048576
    PIECE_BYTES = 32672
