"""Fine-tuning: one network for each held-out domain and trial."""
