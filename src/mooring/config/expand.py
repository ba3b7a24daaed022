"""From plugin sets to one ordered list per extension point.

`multiPoint` enables a plugin at every point it implements. Expanding it for one point gives:

    1. plugins enabled both there and in multiPoint, in the order of the point's own list
    2. the other multiPoint plugins that implement the point, in multiPoint order
    3. the rest of the point's own list

so a plugin that is enabled at the point alone runs after all of multiPoint. `disabled` at the point
removes multiPoint plugins, `*` removes all of them. The runtime calls this once per profile and
point, with the sets that `merge_plugins` has merged.
"""

from collections.abc import Callable

from mooring.config.source import child_path
from mooring.config.types import PluginRef, Plugins
from mooring.errors import ConfigError, Problem

SCORING_POINTS = frozenset({"score", "placementScore"})


def expand_point(
    plugins: Plugins, point: str, implements: Callable[[str], bool], path: str = "plugins"
) -> tuple[PluginRef, ...]:
    """List the plugins that run at a point, in order.

    At the scoring points every weight is set, and 1 where none was given; elsewhere it is 0.
    Raises ConfigError, with paths below `path`, for plugins listed twice and for plugins that
    are enabled at a point they do not implement.
    """
    chosen = plugins.at(point)
    shared = plugins.multi_point
    problems: list[Problem] = []

    explicit: set[str] = set()
    for index, ref in enumerate(chosen.enabled):
        place = f"{child_path(path, point)}.enabled[{index}]"
        if not implements(ref.name):
            message = f'plugin "{ref.name}" does not extend {interface_name(point)} plugin'
            problems.append(Problem(place, message))
        elif ref.name in explicit:
            problems.append(_repeated(place, ref.name, point))
        explicit.add(ref.name)

    disabled = {ref.name for ref in chosen.disabled}
    overrides: set[str] = set()
    from_shared: list[str] = []
    for index, ref in enumerate(() if "*" in disabled else shared.enabled):
        if ref.name in disabled or not implements(ref.name):
            continue
        if ref.name in explicit:
            overrides.add(ref.name)
        elif ref.name in from_shared:
            place = f"{child_path(path, 'multiPoint')}.enabled[{index}]"
            problems.append(_repeated(place, ref.name, point))
        else:
            from_shared.append(ref.name)
    if problems:
        raise ConfigError(problems)

    own = [ref.name for ref in chosen.enabled]
    names = [
        *(name for name in own if name in overrides),
        *from_shared,
        *(name for name in own if name not in overrides),
    ]
    if point not in SCORING_POINTS:
        return tuple(map(PluginRef, names))
    # The point's own entry comes last and wins, even without a weight.
    weights = {ref.name: ref.weight or 1 for ref in (*shared.enabled, *chosen.enabled)}
    return tuple(PluginRef(name, weights[name]) for name in names)


def enabled_names(plugins: Plugins) -> tuple[str, ...]:
    """Every plugin that is enabled anywhere, once: these are the ones to build."""
    sets = plugins.by_point().values()
    return tuple(dict.fromkeys(ref.name for chosen in sets for ref in chosen.enabled))


def interface_name(point: str) -> str:
    """The word kube-scheduler's messages use for a point: `preFilter` is `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _repeated(place: str, name: str, point: str) -> Problem:
    return Problem(place, f'plugin "{name}" already registered as "{interface_name(point)}"')
