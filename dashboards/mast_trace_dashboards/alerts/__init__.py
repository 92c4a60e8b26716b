"""Alert rules: one table of them, evaluated by Grafana, by Prometheus, or by `mast-trace alerts`."""
