"""Entry point of the command line: ``python -m cardan``."""

import sys

from cardan.cli import main

if __name__ == "__main__":
    sys.exit(main())
