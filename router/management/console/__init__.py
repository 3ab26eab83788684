"""The console: a page for browsers, of plain files that a router serves as they are."""
