"""Settings of the garbage collector around the reading of a cluster."""

from __future__ import annotations

import gc
import subprocess
import sys

# In a process of its own: the settings are those of the process.
SCRIPT = """
import gc, weakref
from mooring.observe import garbage_collection

class Cycle:
    def __init__(self):
        self.itself = self

with garbage_collection.suspended():
    assert not gc.isenabled()
    read = Cycle()
assert gc.isenabled() and gc.get_freeze_count()
alive = weakref.ref(read)
del read
gc.collect()
assert alive() is not None, "frozen"
with garbage_collection.suspended():
    assert alive() is None, "an earlier reading is collected"
try:
    with garbage_collection.suspended():
        raise ValueError
except ValueError:
    assert gc.isenabled()
"""


FREEZE = """
import gc
from mooring.observe import garbage_collection

garbage_collection.freeze_existing_objects()
assert gc.get_freeze_count() > 1_000 > len(gc.get_objects())
"""


def test_what_exists_is_not_looked_at_again() -> None:
    subprocess.run([sys.executable, "-c", FREEZE], check=True)


def test_is_suspended_while_a_cluster_is_read_and_keeps_no_earlier_one() -> None:
    assert gc.isenabled()
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


# The threshold at the end of a command, however it ends.
COMMAND = """
import atexit, gc
from mooring.cli import main
atexit.register(lambda: print(gc.get_threshold()[0]))
main(["--version"])
"""


def test_commands_collect_rarely_from_the_beginning() -> None:
    command = [sys.executable, "-c", COMMAND]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "50000"
