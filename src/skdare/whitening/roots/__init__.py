"""Inverse square roots of second moments, by whichever way is the quickest."""
