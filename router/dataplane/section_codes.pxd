# The numbers of section_codes.py, as compiled modules know them: a test compares the two.

cdef enum:
    HEADER = 0x70
    MESSAGE_ANNOTATIONS = 0x72
    PROPERTIES = 0x73
    APPLICATION_PROPERTIES = 0x74
    DATA = 0x75
    SEQUENCE = 0x76
    VALUE = 0x77
    FOOTER = 0x78
    PLAIN = -1
    UNREAD = -2
    DESCRIBED = -3
