"""Choosing options by leaving training domains out in turn."""
