"""Pretrained networks up to their features."""
