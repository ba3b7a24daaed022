"""Pods with a start time, budgets, and preemption requests for a profile of one filter."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

import mooring.framework as fw
from mooring.api import codec
from mooring.api.policy import PodDisruptionBudget
from mooring.cache.pods import Pod
from mooring.framework._internal import InternalNominator, InternalWhatIf, depends_on_of
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.preemption.budgets import DisruptionBudgets
from mooring.preemption.candidates import PreemptionReport, search, worth_trying
from mooring.preemption.ranks import Ranks
from mooring.preemption.victims import PreemptionRequest
from mooring.queue.nominator import NominatedPods
from mooring.testing.build import StubWhatIf, build, prepare
from mooring.testing.builders import pod

NOW = 1_767_229_200.0  # 2026-01-01T01:00:00Z


def runs(name: str, since: int | None = 0, **about: Any) -> Pod:
    """A pod that started so many minutes after midnight, or without a start time."""
    plain = pod(name, **{"cpu": 1, "priority": 0, **about})
    text = None if since is None else f"2026-01-01T00:{since:02}:00Z"
    return Pod(structs.replace(plain.api, status=structs.replace(plain.status, start_time=text)))


def budget(
    name: str,
    allowed: int,
    selects: Mapping[str, str] | None,
    *,
    namespace: str = "default",
    disrupted: tuple[str, ...] = (),
) -> PodDisruptionBudget:
    raw: dict[str, Any] = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {} if selects is None else {"selector": {"matchLabels": dict(selects)}},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }
    return codec.convert(raw, PodDisruptionBudget)


class OneByOne(StubWhatIf):
    """Nodes are asked about one by one: many at once is a matter of `decision.whatif`."""

    nominator: InternalNominator = NominatedPods()

    def without_pods(self, *_: object) -> None:
        return None

    def fits_all(self, *_: object) -> None:
        return None

    def basis(self, *_: object) -> None:
        return None

    def nominated_on(self, node_name: str, pod: Pod) -> tuple[Pod, ...]:
        return ()

    def fixed(self, pod: Pod) -> frozenset[str]:
        return frozenset(one.name for one in self.filters if depends_on_of(one, pod) is fw.NODE)


def what_if(*filters: fw.Filter) -> OneByOne:
    asked = OneByOne()
    asked.filters = list(filters) or [build(NodeResourcesFit)]
    return asked


def request_for(
    preemptor: Pod,
    *budgets: PodDisruptionBudget,
    asked: InternalWhatIf | None = None,
    spares: Callable[[Pod], bool] = lambda other: False,
    ranks: Ranks | None = None,
) -> PreemptionRequest:
    return PreemptionRequest(
        state=prepare(build(NodeResourcesFit), preemptor),
        pod=preemptor,
        what_if=what_if() if asked is None else asked,
        budgets=DisruptionBudgets(budgets),
        spares=spares,
        now=NOW,
        ranks=Ranks() if ranks is None else ranks,
    )


def search_refused(
    asked: PreemptionRequest, cluster: fw.Nodes, *, wanted: int | None = None, start: int = 0
) -> PreemptionReport:
    """Search every node that the filters refuse with the code Unschedulable."""
    verdicts = fw.Verdicts.of(asked.what_if.fits(asked.state, asked.pod, n) for n in cluster)
    return search(asked, cluster, worth_trying(verdicts), wanted=wanted, start=start)


def names(pods: Any) -> str:
    return " ".join(p.name for p in pods)
