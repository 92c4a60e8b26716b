"""Experiments on a traced program: arms, lessons from earlier runs, and the marks that tell them apart.

`assignment` chooses the arm of a task, `lessons` fetches what earlier runs teach, and `marks` writes both
on the root span of the runs inside of a block.
"""
