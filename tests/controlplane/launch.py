"""Becomes another program that the kernel ends together with whoever started it.

`processes.py` runs this file by path: python -I -S launch.py <pid of the parent> <program> ...
Doing this between fork and exec instead would run Python in a fork of a process with threads.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if sys.platform == "linux":
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("launch.py: prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != int(sys.argv[1]):
        sys.exit("launch.py: the parent was gone before its death could be noticed")
os.execv(sys.argv[2], sys.argv[2:])
