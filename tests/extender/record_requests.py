"""Records the requests of the real kube-scheduler: `python -m tests.extender.record_requests`.

Needed again only when Kubernetes changes what it sends; the findings are in `data/`.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import node, pod, priority_class
from tests.controlplane.waiting import wait_until

DATA = Path(__file__).with_name("data")
VERBS = ("filter", "prioritize", "preempt", "bind")


class Recorder(ThreadingHTTPServer):
    """Agrees to everything, binds nothing, and keeps the first request of each verb."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: dict[str, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        verb = self.path.rpartition("/")[2]
        self.server.heard.setdefault(verb, body)
        answer = json.dumps(_agreed(verb, json.loads(body))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *unused: object) -> None:
        """There is nothing to say."""


def _agreed(verb: str, asked: Any) -> Any:
    if verb == "filter":
        return {"Nodes": asked["Nodes"], "NodeNames": asked["NodeNames"]}
    if verb == "prioritize":
        return []
    if verb == "bind":
        return {"Error": "only written down"}
    full = asked["NodeNameToVictims"] or {}
    meta = {
        name: {
            "Pods": [{"UID": victim["metadata"]["uid"]} for victim in there["Pods"]],
            "NumPDBViolations": there["NumPDBViolations"],
        }
        for name, there in full.items()
    }
    return {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"] or meta}


def record(control_plane: ControlPlane, names_only: bool) -> dict[str, bytes]:
    with Recorder() as recorder:
        serving = threading.Thread(target=recorder.serve_forever)
        serving.start()
        try:
            _provoke(control_plane, recorder.server_port, names_only)
            wait_until(lambda: set(recorder.heard) >= set(VERBS), what="all verbs were asked")
        finally:
            recorder.shutdown()
            serving.join()
        return recorder.heard


def _provoke(control_plane: ControlPlane, port: int, names_only: bool) -> None:
    """Full nodes and small ones; a pod that fits, and an urgent one that does not."""
    admin = control_plane.admin
    tainted = ["dedicated=web:PreferNoSchedule"]
    admin.create_many([node("a", cpu="2", zone="z1", taints=tainted), node("b", cpu="2")])
    admin.create_many(node(name, cpu="500m") for name in ("small-1", "small-2"))
    admin.create(priority_class("urgent", 1000))
    for name, where in (("web", "a"), ("db", "b")):
        admin.create(pod(name, node=where, cpu="1500m", labels={"app": name}))
    admin.create(pod("fits", cpu="100m", labels={"want": "you"}))
    admin.create(pod("urgent", cpu="1", priority_class="urgent"))
    control_plane.kube_scheduler(
        {
            "extenders": [
                {
                    "urlPrefix": f"http://127.0.0.1:{port}",
                    **{f"{verb}Verb": verb for verb in VERBS},
                    "weight": 1,
                    "nodeCacheCapable": names_only,
                }
            ]
        }
    )


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for names_only, form in ((False, "full"), (True, "names")):
        with ControlPlane() as running:
            for verb, body in record(running, names_only).items():
                (DATA / f"{verb}-{form}.json").write_bytes(body)
                print(f"{verb}-{form}.json: {len(body)} bytes")
