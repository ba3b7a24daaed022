"""An evaluator of a few plugins on a cache, without a scheduler around it."""

from __future__ import annotations

from mooring.cache.cache import Cache
from mooring.config import load_text
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.framework.plugin import Base
from mooring.observe.metrics import Metrics
from mooring.queue.nominator import NominatedPods
from mooring.runtime.guard import Guard
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.testing.build import StubHandle


def evaluator_of(
    cache: Cache, *plugins: type[Base], nominator: NominatedPods | None = None
) -> PodEvaluator:
    """With these plugins and no others."""
    enabled = ", ".join(f"{{name: {plugin.name}}}" for plugin in plugins)
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{disabled: [{{name: "*"}}], enabled: [{enabled}]}}
      queueSort: {{enabled: [{{name: PrioritySort}}]}}
      bind: {{enabled: [{{name: DefaultBinder}}]}}
"""
    (plan,) = plan_profiles(load_text(config), Registry.discover(plugins))
    handle = StubHandle(nodes=cache.nodes, objects=cache.objects)
    profile = plan.build(handle)
    nominated = NominatedPods() if nominator is None else nominator
    return PodEvaluator(DecisionPlugins(profile, Guard(Metrics())), nominated, cache.objects)
