"""Fitting: the problem, its Lagrangian, canonical weights, and the search over options."""
