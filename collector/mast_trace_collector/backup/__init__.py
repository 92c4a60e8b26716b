"""Back-ups of a store: a folder's, a database's, and their restoring."""
