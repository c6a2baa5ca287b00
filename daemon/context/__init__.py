"""From a request to the anchored, healed prompt."""
