"""Kubernetes scheduling in Python.

Plugin authors import `mooring.framework`, test authors `mooring.testing`. The two names below are
loaded on first use, so that `mooring --help` does not wait for NumPy.
"""

TYPE_CHECKING = False  # as that of `typing`, which takes its time to load
if TYPE_CHECKING:
    from mooring.scheduler import Scheduler
    from mooring.simulator import Simulation

__version__ = "0.1.0"

__all__ = ["Scheduler", "Simulation", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Scheduler":
        from mooring.scheduler import Scheduler

        return Scheduler
    if name == "Simulation":
        from mooring.simulator import Simulation

        return Simulation
    raise AttributeError(f"module 'mooring' has no attribute {name!r}")
