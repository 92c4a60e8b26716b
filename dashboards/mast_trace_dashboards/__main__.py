"""`python -m mast_trace_dashboards` is the `mast-trace` command."""

from mast_trace_dashboards.cli import main

if __name__ == "__main__":
    main()
