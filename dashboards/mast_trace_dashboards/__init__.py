"""What people see: named queries, Grafana dashboards, alert rules, the web view and the CLI."""
