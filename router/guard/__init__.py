"""A guard before an AMQP engine: what a peer writes is checked against the protocol before the engine acts on it.

It knows nothing of this router, of sockets or of the engine: bytes in, a verdict out.
"""
