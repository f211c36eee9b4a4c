"""The one objective: a weighted sum of losses over rows, domain by domain."""
