import pytest

from mooring.errors import ConfigError
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity, InterPodAffinityArgs
from mooring.testing.build import build


def test_counts_requirements_of_others_once_and_ignores_nothing_by_default() -> None:
    args = InterPodAffinityArgs()
    assert args.hard_pod_affinity_weight == 1
    assert not args.ignore_preferred_terms_of_existing_pods


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_accepts_weights_of_one_hundred_and_less(weight: int) -> None:
    plugin = build(InterPodAffinity, hardPodAffinityWeight=weight)
    assert plugin.args.hard_pod_affinity_weight == weight


@pytest.mark.parametrize("weight", [-1, 101])
def test_refuses_other_weights_in_kube_schedulers_words(weight: int) -> None:
    text = rf"hardPodAffinityWeight: Invalid value: {weight}: not in valid range \[0, 100\]"
    with pytest.raises(ConfigError, match=text):
        build(InterPodAffinity, hardPodAffinityWeight=weight)
