"""The compiled kernel: paths, loads, deliveries and delays of a mesh, and their repair after each failure."""
