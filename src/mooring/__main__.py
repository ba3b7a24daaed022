"""`python -m mooring` is `mooring`."""

import sys

from mooring.cli import main

sys.exit(main())
