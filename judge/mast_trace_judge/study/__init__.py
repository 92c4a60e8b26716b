"""Studies of the judge: benchmarks, agreement, fitting, re-judging."""
