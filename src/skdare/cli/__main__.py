"""The command line as a module: ``python -m skdare.cli``."""

from skdare.cli import main

main(prog_name="skdare")
