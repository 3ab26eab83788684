"""The digital twin beside real router processes, and a twin of a thousand routers; figures, and no timed tests."""
