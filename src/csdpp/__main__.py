"""``python -m csdpp`` is the command ``csdpp``."""

import sys

from csdpp.cli import main

if __name__ == "__main__":
    sys.exit(main())
