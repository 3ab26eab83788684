"""Policy: who may come in, and what each client may name, ask and take."""
