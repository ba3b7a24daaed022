"""The terms of pods, which are kept from one call to the next."""

import pytest
from msgspec import structs
from tests.plugins.interpodaffinity.affinity import anti_affinity, term

from mooring.framework import Pod
from mooring.plugins.interpodaffinity import terms
from mooring.plugins.interpodaffinity.terms import terms_of
from mooring.testing.builders import pod


def minding(app: str, namespace: str = "default") -> Pod:
    return pod("p", namespace=namespace, affinity=anti_affinity(term("zone", app=app)))


@pytest.mark.parametrize("most", [1, 3, 100])
def test_every_pod_has_its_own_terms_however_many_there_were_before(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(terms, "MOST_KNOWN", most)
    for number in range(200):  # each is gone before the next is made, and may have its address
        (found,) = terms_of(minding(f"app-{number}")).anti_affinity
        assert found.peers.selector.matches({"app": f"app-{number}"})
        assert len(terms._known) <= most


def test_terms_of_one_template_mean_pods_of_their_own_namespace() -> None:
    one = minding("web")
    other = Pod(structs.replace(minding("web", "elsewhere").api, spec=one.spec))
    for asked, namespace in ((one, "default"), (other, "elsewhere"), (one, "default")):
        (found,) = terms_of(asked).anti_affinity
        assert found.peers.namespaces == {namespace}
