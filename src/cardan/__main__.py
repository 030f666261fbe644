"""``python -m cardan``: the command line."""

import sys

from cardan.cli import main

if __name__ == "__main__":
    sys.exit(main())
