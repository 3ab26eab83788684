"""Proton as an engine without sockets."""
