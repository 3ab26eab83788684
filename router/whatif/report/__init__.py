"""The report of a run: one HTML file with everything in it, and the same in short as JSON. Needs matplotlib.

`write` is what a run calls at its end. `facts` has read and computed all that is said, `pictures` draws, `page` writes.
"""

from router.whatif.report.report_writer import PAGE, SUMMARY, write

__all__ = ["PAGE", "SUMMARY", "write"]
