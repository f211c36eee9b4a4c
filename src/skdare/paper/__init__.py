"""The paper: its theory measured, its protocol, its studies and the figures it prints."""
