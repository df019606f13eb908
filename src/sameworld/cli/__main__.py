"""``python -m sameworld.cli``."""

import sys

from sameworld.cli.main import main

sys.exit(main())
