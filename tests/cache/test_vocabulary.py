"""Codes of labels and taints that no node has any more are forgotten, and nobody is misled."""

from typing import Any

import pytest

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing import node, pod
from mooring.testing.builders import HOSTNAME, ZONE

ALIVE = 10
CHURN = 5_000
BOUND = 2 * (ALIVE + 1) + 1_024 + 1


def join(cache: Cache, number: int) -> None:
    name = f"n{number}"
    taints = [f"owner=team-{number}:NoSchedule"]
    cache.put_node(node(name, zone=f"z{number % 3}", taints=taints).api)
    cache.put_pod(pod("agent", uid=f"agent-{number}", on=name))


def leave(cache: Cache, number: int) -> None:
    cache.remove_pod(pod("agent", uid=f"agent-{number}"))
    cache.remove_node(f"n{number}")


def everyone(resident: Pod) -> bool:
    return True


def check(cache: Cache, numbers: range) -> None:
    nodes = cache.nodes
    assert set(nodes.names) == {f"n{number}" for number in numbers}
    values = nodes.label_values(HOSTNAME)
    assert tuple(values[code] for code in nodes.label_codes(HOSTNAME)) == nodes.names
    owners = nodes.by_taints(lambda taints: int(taints[0].value[5:]) if taints else -1)
    assert [f"n{owner}" for owner in owners] == list(nodes.names)
    per_host = nodes.count_pods_by(HOSTNAME, "everyone", everyone)
    counted = {value: n for value, n in zip(values, per_host.tolist(), strict=True) if n}
    assert counted == dict.fromkeys(nodes.names, 1)
    per_zone = nodes.count_pods_by(ZONE, "everyone", everyone)
    assert int(per_zone.sum()) == len(numbers)


def test_nodes_of_the_past_are_forgotten_while_answers_stay_right() -> None:
    cache = Cache()
    for number in range(ALIVE):
        join(cache, number)
    check(cache, range(ALIVE))
    for number in range(ALIVE, CHURN):
        join(cache, number)
        leave(cache, number - ALIVE)
        assert len(cache.nodes.label_values(HOSTNAME)) <= BOUND
        assert len(cache.table.taint_sets) <= BOUND
        if number % 97 == 0:
            check(cache, range(number - ALIVE + 1, number + 1))
    check(cache, range(CHURN - ALIVE, CHURN))
    assert len(cache.table._taint_code_of) <= BOUND
    assert cache.nodes.label_values(ZONE) == (None, "z0", "z1", "z2")


def test_nodes_of_the_past_are_forgotten_even_if_nobody_asks_again() -> None:
    cache = Cache()
    cache.nodes.label_codes(HOSTNAME)
    cache.nodes.count_pods_by(HOSTNAME, "everyone", everyone)
    for number in range(CHURN):
        join(cache, number)
        leave(cache, number)
        assert len(cache.table._labels[HOSTNAME].values) <= BOUND
    join(cache, CHURN)
    check(cache, range(CHURN, CHURN + 1))


def test_a_node_that_is_relabelled_for_ever_does_not_fill_the_vocabulary() -> None:
    cache = Cache()
    cache.put_pod(pod("p", on="n"))
    for number in range(CHURN):
        cache.put_node(
            node("n", labels={"build": str(number)}, taints=[f"b={number}:NoExecute"]).api
        )
        nodes = cache.nodes
        values = nodes.label_values("build")
        assert [values[code] for code in nodes.label_codes("build")] == [str(number)]
        per_build = nodes.count_pods_by("build", "everyone", everyone)
        assert per_build[nodes.label_codes("build")].tolist() == [1]
        assert max(len(values), len(cache.table.taint_sets)) <= BOUND


@pytest.mark.parametrize("what", ["labels", "taints"])
def test_codes_dealt_anew_void_what_readers_of_the_journal_kept(what: str) -> None:
    cache = Cache()
    for number in range(ALIVE):
        cache.put_node(node(f"n{number}", **{what: special(what, number)}).api)
    # The neighbours of the node that changes were given late codes, and get earlier ones.
    for number in range(ALIVE, 0, -1):
        cache.put_node(node(f"n{number}", **{what: special(what, -number)}).api)
    journal = cache.table.node_journal
    kept, position, voided = codes_of(cache), journal.position, 0
    for number in range(ALIVE, CHURN):
        cache.put_node(node("n0", **{what: special(what, number)}).api)
        rows = journal.since(position)
        live = codes_of(cache)
        if rows is None:
            voided += 1
        else:
            for column, others in zip(kept, live, strict=True):
                for row in rows:
                    column[row] = others[row]
            assert kept == live
        kept, position = live, journal.position
    assert 0 < voided < 20


def special(what: str, number: int) -> Any:
    return {"build": f"b{number}"} if what == "labels" else [f"b=b{number}:NoExecute"]


def codes_of(cache: Cache) -> list[list[int]]:
    columns = (cache.nodes.label_codes("build"), cache.table.taint_code.view)
    return [column.tolist() for column in columns]
