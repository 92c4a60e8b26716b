"""Grafana dashboards as code: a thin builder over classic JSON (schema version 42).

Classic v1 is what file provisioning loads in Grafana 11.6 to 13. The JSON is committed under
``json/`` so that a change of a dashboard can be reviewed, and a test holds it against the code.
"""
