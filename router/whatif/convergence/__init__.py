"""The twin: how long the routers of a mesh take to agree, by their own control planes under virtual time."""
