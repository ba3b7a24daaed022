"""Make every example's folder importable, as `mooring` does with the folder it is run in.

So `namescore:NameScore` in a config.yaml means the same class to a test and to the command line.
"""

import sys
from pathlib import Path

for _about in Path(__file__).parent.glob("*/README.md"):
    sys.path.insert(0, str(_about.parent))
