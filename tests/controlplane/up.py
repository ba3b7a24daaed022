"""A real control plane to play with or to measure against, until Ctrl-C.

    python -m tests.controlplane.up --nodes 1000

prints the address, a token and a kubeconfig of an administrator. With `--kube-scheduler` the real
one schedules.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence

from tests.controlplane.build import ControlPlaneError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import nodes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run etcd and kube-apiserver until Ctrl-C.")
    parser.add_argument("--nodes", type=int, default=0, help="create so many nodes first")
    parser.add_argument("--cpu", default="4", help="of each node (default 4)")
    parser.add_argument("--memory", default="32Gi", help="of each node (default 32Gi)")
    parser.add_argument("--zones", type=int, default=10, help="nodes are spread over (default 10)")
    parser.add_argument("--kube-scheduler", action="store_true", help="start the real one, too")
    parser.add_argument("--durable", action="store_true", help="etcd writes through to the disk")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end in good order
    try:
        with ControlPlane(durable=options.durable) as control_plane:
            control_plane.admin.create_many(
                nodes(options.nodes, zones=options.zones, cpu=options.cpu, memory=options.memory)
            )
            if options.kube_scheduler:
                control_plane.kube_scheduler()
            _introduce(control_plane)
            while control_plane.apiserver.is_alive and control_plane.etcd.is_alive:
                time.sleep(0.5)
            print("the control plane ended by itself", file=sys.stderr)
            return 1
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0


def _introduce(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.kubeconfig_for(control_plane.admin_user)
    print(f"server      {control_plane.server}")
    print(f"token       {control_plane.token}")
    print(f"kubeconfig  {kubeconfig}")
    print(f"logs        {control_plane.folder}")
    print("Ctrl-C ends it", flush=True)


if __name__ == "__main__":
    sys.exit(main())
