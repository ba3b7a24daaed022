"""The programs that render, for the tests of this folder."""

from tests.controlplane.fixtures import real_programs
from tests.deploy.fixtures import helm_program

__all__ = ["helm_program", "real_programs"]
