"""What models are made of: files of meshes and topologies, demands, groups and subscribers, and live meshes."""
