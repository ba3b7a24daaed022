import pickle

from mooring.errors import (
    ApiError,
    ConfigError,
    InternalError,
    MooringError,
    PluginError,
    Problem,
)


def test_prints_a_problem_as_path_and_message() -> None:
    assert str(Problem("profiles[0]", "Required value")) == "profiles[0]: Required value"
    assert str(Problem("", "the file is empty")) == "the file is empty"


def test_lists_every_problem_on_its_own_line() -> None:
    error = ConfigError([Problem("a", "is wrong"), Problem("b", "too")], "x.yaml")
    assert str(error) == "a: is wrong\nb: too"
    assert error.problems == (Problem("a", "is wrong"), Problem("b", "too"))
    assert error.source == "x.yaml"


def test_names_the_plugin_and_the_point() -> None:
    error = PluginError("returned None", plugin="Headroom", point="filter")
    assert (str(error), error.plugin, error.point) == ("returned None", "Headroom", "filter")


def test_has_one_root() -> None:
    for kind in (ConfigError, ApiError, PluginError, InternalError):
        assert issubclass(kind, MooringError)


def test_survives_pickling() -> None:
    plugin = pickle.loads(pickle.dumps(PluginError("m", plugin="P", point="score")))
    assert (str(plugin), plugin.plugin, plugin.point) == ("m", "P", "score")
    config = pickle.loads(pickle.dumps(ConfigError([Problem("a", "b")], "f")))
    assert (config.problems, config.source) == ((Problem("a", "b"),), "f")
