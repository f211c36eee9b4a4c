"""From rows and domains to canonical weights: the problem, the Lagrangian, the search."""
