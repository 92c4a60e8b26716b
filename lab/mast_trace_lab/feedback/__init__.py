"""Lessons from failed runs, and experiments that tell whether they help.

`lessons` makes them from verdicts and labels, `selection` reads them from the store, `wording` puts them
into words; `statistics` says what an experiment may claim, without input or output.
"""
