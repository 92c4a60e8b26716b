"""The facts that every instrumentation keeps, written once.

`lifecycle` holds those of all instrumentations, `frameworks` those of agent frameworks, `clients` those of
model clients. A folder under ``tests/instrumentations/`` has a file with one class: it inherits the facts,
and names the instrumentor and its programs.
"""
