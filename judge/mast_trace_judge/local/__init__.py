"""What decides a local verdict: rules, attribution and the texts they read."""
