"""The local layers of the judge: rules, attribution and the texts that they read."""
