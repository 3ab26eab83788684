# The numbers of guard_constants.py, as compiled modules know them: a test compares the two.

cdef enum:
    HEADER = 0
    SASL = 1
    FRAMES = 2
    CLOSED = 3
    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18
    SASL_MECHANISMS = 0x40
    SASL_INIT = 0x41
    SASL_CHALLENGE = 0x42
    SASL_RESPONSE = 0x43
    SASL_OUTCOME = 0x44
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27
    AMQP = 0x414D5150
    NOBODY = 0
    SENDER = 1
    RECEIVER = 2
    WRONG = -1
    ABSENT = -2
    MOST_REPEATED_BYTES = 4194304
    MOST_TAG_BYTES = 32
    MOST_TRANSFER_BYTES = 256
    MOST_STATE_BYTES = 64
    PLAIN_TRANSFER_BYTES = 36
    FLOW_UINTS = 8
    HEAD_AT = 4
    TYPE_AT = 5
    CHANNEL_AT = 6
    BODY_AT = 8
    CODE_FORM_AT = 9
    CODE_AT = 10
    LIST_AT = 11
    SIZE_AT = 12
    COUNT8_AT = 13
    FIELDS8_AT = 14
    COUNT32_AT = 16
    FIELDS32_AT = 20

cdef enum:  # apart, since C gives all numbers of an enumeration the type of the largest
    MASK = 0xFFFFFFFF
    HALF = 0x7FFFFFFF
