"""What a kube-apiserver answers to the scripts, written down for machines without one.

    python -m tests.cluster.apiserver.record_answers

runs a real one and renews the files in `data`.
"""

from __future__ import annotations

import gzip
import json
import secrets
from pathlib import Path
from typing import Any

from tests.cluster.apiserver import (
    scripts_custom_objects,
    scripts_custom_values,
    scripts_definitions,
    scripts_kinds,
    scripts_lists_and_reviews,
    scripts_objects,
    scripts_pods,
)
from tests.cluster.apiserver.compared_requests import (
    RealServer,
    Step,
    comparable,
    delete,
    post,
    read_scripts,
    thing,
)
from tests.controlplane.cluster import ControlPlane

FOLDER = Path(__file__).parent / "data"
FILES: dict[str, dict[str, list[Step]]] = {
    "real_answers": {
        **scripts_objects.SCRIPTS,
        **scripts_pods.SCRIPTS,
        **read_scripts("scripts_validation.yaml"),
        **read_scripts("scripts_quotas.yaml"),
        **scripts_kinds.SCRIPTS,
        **scripts_lists_and_reviews.SCRIPTS,
    },
    "real_answers_custom": {
        **scripts_definitions.SCRIPTS,
        **scripts_custom_values.SCRIPTS,
        **scripts_custom_objects.SCRIPTS,
    },
}
SCRIPTS: dict[str, list[Step]] = {
    name: steps for scripts in FILES.values() for name, steps in scripts.items()
}

Answers = dict[str, list[Any]]


def record(real: RealServer, scripts: dict[str, list[Step]] = SCRIPTS) -> Answers:
    """The answers to scripts, each in a namespace of its own."""
    answers: Answers = {}
    for name, steps in scripts.items():
        namespace = f"like-{secrets.token_hex(4)}"
        begun = real.ask(post("/api/v1/namespaces", thing("v1", "Namespace", namespace)), namespace)
        assert begun.status == 201, begun
        answers[name] = [comparable(real.ask(step, namespace), namespace) for step in steps]
        if name in FILES["real_answers_custom"]:
            for plural in ("widgets", "gadgets"):
                path = f"{scripts_definitions.DEFINITIONS}/{plural}.{scripts_definitions.GROUP}"
                real.ask(delete(path), namespace)
    return answers


def recorded() -> Answers:
    answers: Answers = {}
    for name in FILES:
        with gzip.open(FOLDER / f"{name}.json.gz", "rt") as file:
            answers |= json.load(file)
    return answers


def main() -> None:
    with ControlPlane() as running:
        real = RealServer(running.server, running.token, running.trusted)
        try:
            for name, scripts in FILES.items():
                text = json.dumps(record(real, scripts), indent=1)
                (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        finally:
            real.close()


if __name__ == "__main__":
    main()
