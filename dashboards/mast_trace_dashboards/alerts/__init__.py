"""Alert rules: one table, evaluated by Grafana, by Prometheus, or by `mast-trace alerts`."""
