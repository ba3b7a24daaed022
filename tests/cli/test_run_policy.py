"""`mooring run` with a configuration of long ago, whose Policy is in the cluster."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.cli.process import Running
from tests.cli.test_run_settings import problems, settled

OLD = """\
apiVersion: kubescheduler.config.k8s.io/v1alpha1
kind: KubeSchedulerConfiguration
schedulerName: mine
algorithmSource:
  policy:
    configMap: {namespace: kube-system, name: rules}
"""
RULES = """\
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: rules}
data:
  policy.cfg: |
    {"kind": "Policy", "apiVersion": "v1", "priorities": [
      {"name": "MostRequestedPriority", "weight": 7}]}
"""


def test_reads_the_policy_from_the_cluster(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, rules, kubeconfig = (tmp_path / name for name in ("old.yaml", "rules.yaml", "kubeconfig"))
    old.write_text(OLD)
    rules.write_text(RULES)
    up = ("cluster", "up", "--nodes", "1", "--kubeconfig", str(kubeconfig))
    flags = ("--config", str(old), "--kubeconfig", str(kubeconfig))
    with Running(*up, "--apply", str(rules), forked=True) as cluster:
        cluster.until("kubectl")
        with caplog.at_level(logging.WARNING):
            (plan,) = settled(*flags).plans
        assert plan.weights["NodeResourcesFit"] == 7
        assert "ImageLocality" not in plan.weights
        assert "configuration note" in caplog.text

        old.write_text(OLD.replace("name: rules", "name: others"))
        (problem,) = problems(*flags)
        assert "couldn't get policy config map kube-system/others: not found" in problem
    (problem,) = problems(*flags)
    assert "couldn't get policy config map kube-system/others: " in problem
