"""Files that models are made of and kept in: readers of meshes, topologies, demands and live meshes."""
