"""The judge: finds the failure modes of finished runs, and the steps that decided them."""
