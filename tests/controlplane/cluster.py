"""A real control plane for tests: etcd and kube-apiserver on loopback, in a folder of their own.

    with ControlPlane() as control_plane:
        control_plane.admin.create_many(nodes(3))
        control_plane.kube_scheduler()

Nothing else runs unless a test starts it: no controllers, no kubelets. `FlakyProxy` puts a bad
network in front, `invariants.py` tells what happened.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Self

from tests.certificates import Authority, Pair, replace, signing_key
from tests.controlplane import commands
from tests.controlplane.admin import AdminApi, ApiFailure
from tests.controlplane.build import binaries
from tests.controlplane.plane import Plane
from tests.controlplane.processes import Port, Process
from tests.controlplane.proxy import FlakyProxy
from tests.controlplane.sweep import Etcd, sweep
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until

_HOSTS = ("127.0.0.1", "localhost", "kubernetes.default.svc")
# Memory is plentiful and processor time is not: a third of it is garbage collection by default.
# So none is collected below the limit; an API server with more to keep would do nothing else.
_SMALL = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}
_LARGE = {"GOGC": "400"}


class ControlPlane(Plane):
    """One API server and its etcd; several may run side by side.

    `durable` makes etcd write through to the disk, `apiserver_args` are further flags for the
    API server, `large` is for more than some ten thousand pods. With MOORING_KEEP_RIG=1 the folder
    with logs and data stays after the end.
    """

    def __init__(
        self, *, durable: bool = False, apiserver_args: Sequence[str] = (), large: bool = False
    ) -> None:
        programs = binaries()
        super().__init__()
        self._etcd_port, self._port = Port(), Port()
        self._data = self.folder / "etcd"
        self.server = f"https://127.0.0.1:{self._port.number}"
        self._serving_authority = Authority("rig serving")
        self.client_authority: Authority = Authority("rig clients")
        self.front_proxy_authority: Authority = Authority("rig front proxy")
        self._write_files()
        self.admin = AdminApi(self.server, self._trust, {"Authorization": f"Bearer {self.token}"})
        self.etcd: Process = Process(
            "etcd",
            commands.etcd(
                programs / "etcd",
                self._data,
                self._etcd_port.number,
                durable=durable,
            ),
            self.folder / "etcd.log",
            ready=self._etcd_is_ready,
            ports=[self._etcd_port.number],
            env=_LARGE if large else _SMALL,
        )
        self.apiserver: Process = Process(
            "kube-apiserver",
            commands.apiserver(
                programs / "kube-apiserver",
                self.folder,
                self._port.number,
                self._etcd_port.number,
                apiserver_args,
            ),
            self.folder / "kube-apiserver.log",
            ready=self._apiserver_is_ready,
            ports=[self._port.number],
            env=_LARGE if large else _SMALL,
        )
        self.admin_user = self.add_user("rig-admin", groups=["system:masters"])
        self._store = Etcd(self._etcd_port.number)
        self._own: frozenset[str] = frozenset()  # what was in it before the first test

    def __enter__(self) -> Self:
        try:
            self.etcd.start()
            self.apiserver.start()
            self.etcd.wait_ready()
            self.apiserver.wait_ready()
            self._own = frozenset(self._store.keys())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        with ExitStack() as stack:  # in reverse, and all of it even if one step fails
            if os.environ.get("MOORING_KEEP_RIG") != "1":
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.callback(self._etcd_port.close)
            stack.callback(self._port.close)
            stack.callback(self.etcd.kill)
            # With open watches it takes many seconds to leave politely.
            stack.callback(self.apiserver.kill)
            stack.callback(self.admin.close)
            stack.callback(self._guests.close)

    def reset(self) -> None:
        """End what tests started and remove what they created: as new, but faster."""
        self._guests.close()
        self._started.clear()
        for process in (self.etcd, self.apiserver):
            process.resume()
            if not process.is_alive:
                process.start()
        self.etcd.wait_ready()
        self.apiserver.wait_ready()
        sweep(self._store, self._own)

    def rest(self) -> None:
        """Take no processor time until `wake`."""
        self.admin.close()  # connections may have grown too old by then
        self.apiserver.pause()
        self.etcd.pause()

    def wake(self) -> None:
        self.etcd.resume()
        self.apiserver.resume()
        self.etcd.wait_ready()
        self.apiserver.wait_ready()

    # --- backups -------------------------------------------------------------------------------

    def back_up(self, name: str) -> None:
        """Keep a copy of all that is stored now, for `restore`; one of that name is replaced."""
        backup = self.folder / f"backup-{name}"
        shutil.rmtree(backup, ignore_errors=True)
        self.etcd.stop()
        shutil.copytree(self._data, backup)
        self.etcd.start().wait_ready()
        self.apiserver.wait_ready()

    def restore(self, name: str) -> None:
        """Start both programs anew on what was stored then; as often as wanted."""
        self.admin.close()
        self.apiserver.kill()
        self.etcd.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self.folder / f"backup-{name}", self._data)
        self.etcd.start().wait_ready()
        self.apiserver.start().wait_ready()

    # --- users ---------------------------------------------------------------------------------

    def add_user(self, name: str, groups: Sequence[str] = ()) -> User:
        user = User(name, tuple(groups))
        pair = self.client_authority.client(name, groups)
        certificate, key = pair.write(self.folder, f"user-{user.file_name}")
        return User(name, tuple(groups), certificate, key)

    def add_service_account(self, name: str, namespace: str = "default") -> User:
        """Somebody with a token in a file, as in a pod; `renew_token` replaces it."""
        metadata = {"name": name, "namespace": namespace}
        self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        token = self.folder / f"token-{namespace}-{name}"
        user = User(f"system:serviceaccount:{namespace}:{name}", token_file=token)
        self.renew_token(user)
        return user

    def renew_token(self, user: User, seconds: int = 3600, *, revoke: bool = False) -> None:
        """Put a new token into the user's file.

        `revoke` makes the old ones worthless, by making the account anew; the server remembers
        tokens it has seen for another 10 s.
        """
        namespace, name = user.name.split(":")[2:]
        if user.token_file is None:
            raise ValueError(f"{user.name} logs in with a certificate, not with a token")
        if revoke:
            self.admin.delete("ServiceAccount", name, namespace)
            metadata = {"name": name, "namespace": namespace}
            self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        path = self.admin.path("ServiceAccount", name, namespace, "token")
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self.admin.request("POST", path, {**asked, "spec": {"expirationSeconds": seconds}})
        replace(user.token_file, answer["status"]["token"].encode())

    def proxy(self, seed: int = 0) -> FlakyProxy:
        """A bad network in front of the API server; it ends with it, or with `reset`."""
        proxy = FlakyProxy(
            upstream=self._port.number,
            serving=self._serving_authority.server(*_HOSTS),
            front_proxy=self.front_proxy_authority.client("front-proxy"),
            clients=self.client_authority.pem,
            seed=seed,
        )
        self._guests.callback(proxy.stop)
        return proxy.start()

    def logs(self, lines: int = 40) -> list[tuple[str, str]]:
        own = [(program.name, program.tail(lines)) for program in (self.etcd, self.apiserver)]
        return own + super().logs(lines)

    # --- faults --------------------------------------------------------------------------------

    def rotate_serving_certificate(self, *, new_authority: bool = False) -> int:
        """Give the running API server another certificate; its serial, once it is served.

        A new authority is added to `trusted` first; clients have to read that file again.
        """
        if new_authority:
            self._serving_authority = Authority("rig serving")
            replace(self.trusted, self.trusted.read_bytes() + self._serving_authority.pem)
        pair = self._serving_authority.server(*_HOSTS)
        pair.write(self.folder, "serving")
        wait_until(
            lambda: self.served_serial() == pair.serial,
            90.0,  # it notices at once, or at the latest when it looks each minute
            what="the API server serves its new certificate",
        )
        return pair.serial

    def served_serial(self) -> int:
        """The serial number of the certificate that new connections get."""
        pem = ssl.get_server_certificate(("127.0.0.1", self._port.number), timeout=10.0)
        return Pair(pem.encode(), b"").serial

    # --- inside --------------------------------------------------------------------------------

    def _write_files(self) -> None:
        folder = self.folder
        replace(self.trusted, self._serving_authority.pem)
        replace(folder / "client-ca.crt", self.client_authority.pem)
        replace(folder / "front-proxy-ca.crt", self.front_proxy_authority.pem)
        self._serving_authority.server(*_HOSTS).write(folder, "serving")
        private, public = signing_key()
        replace(folder / "service-accounts.key", private)
        replace(folder / "service-accounts.pub", public)
        replace(folder / "tokens.csv", f'{self.token},rig-token,1,"system:masters"\n'.encode())
        replace(folder / "audit-policy.json", json.dumps(commands.AUDIT_POLICY).encode())

    def _etcd_is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port.number, timeout=2.0)
        try:
            connection.request("GET", "/health")
            with connection.getresponse() as response:
                return response.status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _apiserver_is_ready(self) -> bool:
        try:
            self.admin.text("GET", "/readyz")
            self.admin.get("Namespace", "default")  # made a moment later
            self.admin.get("Namespace", "kube-system")
        except (OSError, http.client.HTTPException, ApiFailure):
            return False
        return True
