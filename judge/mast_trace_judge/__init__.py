"""The judge: reads finished runs and says which failure modes they show and what decided them."""
