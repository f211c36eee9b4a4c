"""What the records of a run say, in numbers: scores by domain and trial, intervals and tests."""
