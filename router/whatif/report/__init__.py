"""The report of a run: one HTML file with everything in it, and the same in short as JSON. Needs matplotlib and Jinja2.

`write` is what a run calls at its end. `run_facts` has read and computed all that is said, `pictures` draws,
`html_page` says what stands where, and `page.html`, a template, makes HTML of it.
"""

from router.whatif.report.report_writer import PAGE, SUMMARY, write

__all__ = ["PAGE", "SUMMARY", "write"]
