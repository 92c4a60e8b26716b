"""Everything on one machine: `up`, its demo and its announcement."""
