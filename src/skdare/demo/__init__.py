"""The demonstration: what to expect on two real data sets and on the paper's model."""
