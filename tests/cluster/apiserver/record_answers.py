"""What a kube-apiserver answers to the scripts, written down for machines without one.

    python -m tests.cluster.apiserver.record_answers

runs a real one and renews `data/real_answers.json.gz`.
"""

from __future__ import annotations

import gzip
import json
import secrets
from pathlib import Path
from typing import Any

from tests.cluster.apiserver import (
    scripts_kinds,
    scripts_lists_and_reviews,
    scripts_objects,
    scripts_pods,
)
from tests.cluster.apiserver.compared_requests import (
    RealServer,
    Step,
    comparable,
    post,
    read_scripts,
    thing,
)
from tests.controlplane.cluster import ControlPlane

ANSWERS = Path(__file__).parent / "data" / "real_answers.json.gz"
SCRIPTS: dict[str, list[Step]] = {
    **scripts_objects.SCRIPTS,
    **scripts_pods.SCRIPTS,
    **read_scripts("scripts_validation.yaml"),
    **scripts_kinds.SCRIPTS,
    **scripts_lists_and_reviews.SCRIPTS,
}

Answers = dict[str, list[Any]]


def record(real: RealServer) -> Answers:
    """The answers to all scripts, each in a namespace of its own."""
    answers: Answers = {}
    for name, steps in SCRIPTS.items():
        namespace = f"like-{secrets.token_hex(4)}"
        begun = real.ask(post("/api/v1/namespaces", thing("v1", "Namespace", namespace)), namespace)
        assert begun.status == 201, begun
        answers[name] = [comparable(real.ask(step, namespace), namespace) for step in steps]
    return answers


def recorded() -> Answers:
    with gzip.open(ANSWERS, "rt") as file:
        answers: Answers = json.load(file)
    return answers


def main() -> None:
    with ControlPlane() as running:
        real = RealServer(running.server, running.token, running.trusted)
        try:
            text = json.dumps(record(real), indent=1)
        finally:
            real.close()
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
