"""Merging: the first file that says something is right, and nothing else counts."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mooring.client._kubeconfig_file import Kubeconfig, KubeconfigEntry, merge, read_data
from mooring.errors import Problem

NAMES = st.sampled_from(["a", "b", "c", "d"])
KINDS = ("contexts", "clusters", "users")


@st.composite
def raw_files(draw: st.DrawFn) -> Sequence[dict[str, object]]:
    """The data of a few files; each entry has a mark that is found nowhere else."""
    files: list[dict[str, object]] = []
    for number in range(draw(st.integers(0, 4))):
        file: dict[str, object] = {}
        if draw(st.booleans()):
            file["current-context"] = draw(st.sampled_from(["", "a", "b", "c", "d"]))
        for kind in KINDS:
            names: list[str] = draw(st.lists(NAMES, unique=True))
            if names:
                file[kind] = [
                    {"name": name, kind[:-1]: {"mark": f"{number}/{kind}/{name}"}} for name in names
                ]
        files.append(file)
    return files


def read(files: Sequence[dict[str, object]]) -> list[Kubeconfig]:
    problems: list[Problem] = []
    found = [read_data(raw, f"file-{index}", problems) for index, raw in enumerate(files)]
    assert problems == []
    return [config for config in found if config is not None]


def entries(config: Kubeconfig) -> dict[tuple[str, str], KubeconfigEntry]:
    return {(kind, name): entry for kind in KINDS for name, entry in getattr(config, kind).items()}


@given(raw_files())
def test_believes_the_first_file_that_knows_a_name(files: Sequence[dict[str, object]]) -> None:
    configs = read(files)
    merged = merge(configs)
    known = [entries(config) for config in configs]
    keys: set[tuple[str, str]] = set().union(*known)
    assert entries(merged) == {key: next(one[key] for one in known if key in one) for key in keys}
    wanted = [config.current_context for config in configs if config.current_context]
    assert merged.current_context == (wanted[0] if wanted else "")


@given(raw_files(), st.data())
def test_does_not_depend_on_how_files_are_grouped(
    files: Sequence[dict[str, object]], data: st.DataObject
) -> None:
    configs = read(files)
    cut = data.draw(st.integers(0, len(configs)))
    assert merge([merge(configs[:cut]), merge(configs[cut:])]) == merge(configs)


@given(raw_files(), st.data())
def test_does_not_depend_on_the_order_within_a_file(
    files: Sequence[dict[str, object]], data: st.DataObject
) -> None:
    shuffled = [
        {
            key: data.draw(st.permutations(value)) if isinstance(value, list) else value
            for key, value in data.draw(st.permutations(list(file.items())))
        }
        for file in files
    ]
    assert merge(read(shuffled)) == merge(read(files))


@given(raw_files(), st.data())
def test_learns_nothing_from_a_file_that_comes_again(
    files: Sequence[dict[str, object]], data: st.DataObject
) -> None:
    configs = read(files)
    again = data.draw(st.lists(st.sampled_from(configs))) if configs else []
    with_again, without = merge([*configs, *again]), merge(configs)
    assert entries(with_again) == entries(without)
    assert with_again.current_context == without.current_context
