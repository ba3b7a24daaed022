"""What the volume plugins tell in `mooring explain`: volumes that are gone, full, or in use."""

from __future__ import annotations

from tests.lens.clusters import explained, remedy, texts
from tests.plugins.volumes.storage import DRIVER, claim, csi_node, user, volume

from mooring.lens.explanation import Explanation
from mooring.testing import node

ALONE = ["ReadWriteOncePod"]
DISK = {"gcePersistentDisk": {"pdName": "disk"}}


def facts(found: Explanation) -> list[str]:
    return [fact.text for group in found.groups for one in group.refusals for fact in one.facts]


def test_a_claim_for_one_pod_at_a_time_is_free_when_its_user_ends() -> None:
    found = explained(
        user("p", "data"),
        [node("a"), node("b")],
        [user("holder", "data", on="a")],
        [claim("data", bound_to="disk", modes=ALONE), volume("disk")],
    )
    assert facts(found) == ["claim data is ReadWriteOncePod and in use: default/holder"]
    assert texts(found) == ["default/holder ends: claim data is ReadWriteOncePod and in use"]
    assert found.kind == "waits for room"


def test_all_users_of_a_disk_have_to_end() -> None:
    users = [user(name, inline=[{**DISK}], on="a") for name in ("one", "two")]
    found = explained(user("p", inline=[DISK]), [node("a")], users)
    assert facts(found) == ["its disk is in use: default/one and default/two"]
    (edit,) = remedy(found, "its disk is in use").edits
    assert edit.text == "default/one and default/two end: its disk is in use"
    assert [one.name for one in edit.patches] == ["one", "two"]


def test_a_node_with_as_many_volumes_as_a_driver_attaches_needs_one_to_go() -> None:
    objects = [claim(f"c{n}", bound_to=f"d{n}") for n in range(3)]
    found = explained(
        user("p", "c2"),
        [node("a")],
        [user("first", "c0", on="a"), user("second", "c1", on="a")],
        [*objects, *(volume(f"d{n}") for n in range(3)), csi_node("a", limits={DRIVER: 2})],
    )
    assert facts(found) == [f"{DRIVER} attaches at most 2 volumes to a node"]
    assert texts(found) == [
        f"default/first ends: fewer volumes of {DRIVER} on a",
        "add a node like a",
    ]


def test_a_volume_that_is_gone_is_named() -> None:
    found = explained(user("p", "data"), [node("a")], objects=[claim("data", bound_to="lost")])
    assert found.before is not None
    assert [fact.text for fact in found.before.facts] == [
        "volume lost of claim data does not exist"
    ]
    assert found.kind == "misconfigured"
    assert texts(found) == []
