"""`python -m dpframe`: the command line, see `dpframe.cli`."""

import sys

from dpframe.cli import entry, main

__all__ = ["entry", "main"]

if __name__ == "__main__":
    sys.exit(entry())
