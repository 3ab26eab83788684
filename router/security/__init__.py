"""SASL, users and their passwords, TLS profiles: who is at the other end. No sockets; `router/net/` waits for it."""
