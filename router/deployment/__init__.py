"""Files for those who run a router: the unit for systemd."""
