"""Blocks and decorators that record hand-made agents."""
