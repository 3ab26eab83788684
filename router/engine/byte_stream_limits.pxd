# The numbers of byte_stream_limits.py, as compiled modules know them: a test compares the two.

cdef enum:
    LEAST_PIECE_BYTES = 4096
    MOST_PIECE_BYTES = 131072
    MOST_SHARED_PIECE_BYTES = 65536
    PIECE_FRAMES = 16
    PIECE_COPIES = 2048
    LEAST_FAIR_PIECE_BYTES = 256
