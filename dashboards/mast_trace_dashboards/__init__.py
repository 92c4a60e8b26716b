"""The user interfaces: named queries, Grafana dashboards, alert rules, the web view and the CLI."""
