"""`python -m etude`: the same as the command `etude`."""

import sys

from etude.cli import main

if __name__ == "__main__":
    sys.exit(main())
