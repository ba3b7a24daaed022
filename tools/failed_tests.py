"""Names the tests that failed in the last run.

Ends with 1 if there are none, or too many to be tried again.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

LAST_FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-most", type=int, required=True, metavar="N")
    limit = parser.parse_args().at_most
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.is_file() else []
    if not failed:
        print("no test of the last run failed: it ended before, or there was none")
        return 1
    if len(failed) > limit:
        print(f"{len(failed)} tests failed, more than {limit}: none is tried again")
        return 1
    print("tried again, alone:", *failed, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
