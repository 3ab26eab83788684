"""Messages pass while connections die beside them. `tox -e stress` runs it for long; a short one is in the suite."""
