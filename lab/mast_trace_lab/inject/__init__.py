"""Plants faults in successful runs, so that agent, step and failure mode of a failure are known.

An operator of `operators` changes one model answer, one model request or one tool result of a recorded
run. The replay of the change gives a run whose fault is known by construction (AgenTracer, arXiv
2509.03312, programmatic fault injection).
"""
