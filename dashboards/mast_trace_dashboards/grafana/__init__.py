"""Grafana dashboards as code: a thin builder over classic JSON (schema version 42).

File provisioning of Grafana 11.6 to 13 loads this schema. The JSON is committed under ``json/`` so
that a change of a dashboard can be reviewed, and a test compares it with the code.
"""
