"""The exceptions of mooring; the class says whose fault it is.

    MooringError
    ├── ConfigError      the user's: a file or a flag asks for something that cannot be
    │   └── UsageError       a flag is malformed, or does not go with another one
    ├── ApiError         the server's: the API server refused, or could not be reached
    ├── PluginError      the author's: a plugin broke its contract
    │   └── PluginOverrun    by taking too long
    └── InternalError    ours: please report it

A decision that says "no" is none of these: it is a `Status` with a reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mooring.observe.texts import cut


@dataclass(frozen=True, order=True, slots=True)
class Problem:
    """One thing that is wrong, and where: the path is a YAML path or a place in a file."""

    path: str
    message: str
    line: int = field(default=0, compare=False)  # of the file, where it is known

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class MooringError(Exception):
    """Anything mooring raises on purpose."""


class ConfigError(MooringError):
    """The configuration cannot be used; `problems` holds every reason that could be found.

    `source` names the file the problems are in, where there is one.
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)

    @property
    def lines(self) -> list[str]:
        """Each problem with the file and the line in front, where they are known."""
        return [_located(problem, self.source) for problem in self.problems]

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


class UsageError(ConfigError):
    """The command line is malformed: exit code 2."""


def _located(problem: Problem, source: str) -> str:
    text = str(problem)
    if not source or text.startswith((source, "--")):  # it names its file, or it is a flag
        return text
    return f"{source}:{problem.line}: {text}" if problem.line else f"{source}: {text}"


class ApiError(MooringError):
    """The API server refused a request or could not be reached."""


class PluginError(MooringError):
    """A plugin broke its contract; `point` is empty when no extension point was running.

    The message may be the plugin's own, so it is cut.
    """

    def __init__(self, message: str, *, plugin: str, point: str = "") -> None:
        self.plugin = plugin
        self.point = point
        super().__init__(cut(message))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments would otherwise be lost when the error crosses a process.
        return _rebuild_plugin_error, (type(self), str(self), self.plugin, self.point)


class PluginOverrun(PluginError):
    """A plugin took longer, or more, than it may."""


class InternalError(MooringError):
    """A promise mooring makes to itself was broken."""


def _rebuild_plugin_error(
    kind: type[PluginError], message: str, plugin: str, point: str
) -> PluginError:
    return kind(message, plugin=plugin, point=point)
