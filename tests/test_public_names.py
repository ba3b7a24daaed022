import subprocess
import sys

import mooring
import mooring.framework
import mooring.testing


def test_offers_exactly_these_names() -> None:
    assert mooring.__all__ == ["Scheduler", "Simulation", "__version__"]
    assert all(hasattr(mooring, name) for name in mooring.__all__)


def test_keeps_what_it_exports_in_order_and_present() -> None:
    for module in (mooring.framework, mooring.testing):
        assert len(module.__all__) == len(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


def test_does_not_load_numpy_for_the_help_text() -> None:
    code = "import sys, mooring.cli; sys.exit('numpy' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
