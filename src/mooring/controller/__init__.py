"""Schedulers that are one function which picks a node for a pod, and parts for other controllers.

    from mooring.controller import controller

    @controller(scheduler_name="my-scheduler")
    def choose(pod, nodes):
        return random.choice(nodes).name

Pods and nodes flow in as the read-only views that plugins get, bindings and Events flow out. For
controllers of other kinds there are `WorkQueue` and `Reconciler`, and from the room below
`Informer`, `LeaderElection` and `ApiClient`.
"""

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.client import ApiClient
from mooring.client.events import EventSink
from mooring.client.flowcontrol import Backoff, TokenBucket
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.client.informer import Informer, Informers
from mooring.client.lease import Election, LeaderElection, default_identity
from mooring.controller.app import Controller, controller
from mooring.controller.chooser import NotNow
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.reconciler import Reconciler, Requeue
from mooring.controller.recorder import Recorder
from mooring.controller.runner import Options, Runner
from mooring.controller.workqueue import WorkQueue

__all__ = [
    "ApiClient",
    "Backoff",
    "Controller",
    "ControllerMetrics",
    "Election",
    "EventSink",
    "HttpTransport",
    "Informer",
    "Informers",
    "LeaderElection",
    "Node",
    "Nodes",
    "NotNow",
    "Options",
    "Pod",
    "Reconciler",
    "Recorder",
    "Requeue",
    "Runner",
    "TokenBucket",
    "WorkQueue",
    "controller",
    "default_identity",
    "find_endpoint",
]
