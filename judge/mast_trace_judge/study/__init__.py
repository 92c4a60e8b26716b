"""Measures of the judge: benchmarks, agreement, fitting, judging again."""
