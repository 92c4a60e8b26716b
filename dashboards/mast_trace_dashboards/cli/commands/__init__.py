"""The core's commands, a module each; `mast_trace_dashboards.commands` says which module has which."""
