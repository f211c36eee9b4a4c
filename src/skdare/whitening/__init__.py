"""Moments of a domain, and how they adjust its rows: a whitening matrix and a shift."""
