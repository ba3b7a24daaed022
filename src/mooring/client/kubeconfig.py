"""From kubeconfig files to an endpoint, by the rules of kubectl.

    files ─ read ─ merge ─ context ─┬─ cluster ─▶ address, authority, proxy ─┬─▶ Endpoint
                                    └─ user ────▶ certificate, credentials ──┘

Problems of all steps are reported together. They name the file, the entry and the field, but no
values, which may be secrets.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from mooring.client._dial import parse_proxy
from mooring.client._kubeconfig_file import (
    Entries,
    Fields,
    Kubeconfig,
    KubeconfigEntry,
    merge,
    read_file,
)
from mooring.client._kubeconfig_user import AuthInfo, impersonated, read_pem, read_user
from mooring.client.credentials import WithCertificates
from mooring.client.endpoint import Address, Endpoint, parse_server
from mooring.client.exec_plugin import ClusterInfo
from mooring.client.tls import Pem, ReloadingTls
from mooring.errors import ConfigError, Problem

log = logging.getLogger(__name__)

_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


def default_files(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The files that count when none is named: those of $KUBECONFIG, or ~/.kube/config."""
    if listed := environ.get("KUBECONFIG", ""):
        return tuple(dict.fromkeys(path for path in listed.split(os.pathsep) if path))
    home = environ.get("HOME") or os.path.expanduser("~")
    return (str(Path(home, ".kube", "config")),)


def load_kubeconfig(
    path: str = "",
    *,
    context: str = "",
    master: str = "",
    authority: Pem | None = None,
    insecure: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Endpoint:
    """The server and the user of a context; `master` is a URL to use in place of the server.

    The certificate of `master` is verified by `authority` instead of the cluster's CA, if it is
    given, or not at all if `insecure`.
    Raises ConfigError with every problem that could be found.
    """
    problems: list[Problem] = []
    config = _read_all((path,) if path else default_files(environ), problems)
    if problems:
        raise ConfigError(problems, path)
    builder = _EndpointBuilder(config, problems, environ, authority, insecure=insecure)
    endpoint = builder.endpoint(context, master)
    if problems or endpoint is None:
        # Fields are taken out more than once; a problem is told once.
        raise ConfigError(dict.fromkeys(problems), path)
    return endpoint


def plain_endpoint(url: str) -> Endpoint:
    """A server without credentials; https is verified by the system's CAs."""
    try:
        found = parse_server(url)
    except ValueError as error:
        raise ConfigError([Problem("--master", str(error))]) from error
    tls = ReloadingTls() if found.secure else None
    return Endpoint(found.host, found.port, found.prefix, tls=tls)


def _read_all(files: tuple[str, ...], problems: list[Problem]) -> Kubeconfig:
    found = [config for file in files if (config := read_file(file, problems)) is not None]
    if not found and not problems:
        wanted = "no such file" if len(files) == 1 else "none of these files exists"
        problems.append(Problem(os.pathsep.join(files) or "KUBECONFIG", wanted))
    return merge(found)


class _EndpointBuilder:
    """One pass over a merged kubeconfig."""

    def __init__(
        self,
        config: Kubeconfig,
        problems: list[Problem],
        environ: Mapping[str, str],
        authority: Pem | None,
        *,
        insecure: bool,
    ) -> None:
        self.config = config
        self.authority = authority
        self.insecure = insecure
        self.problems = problems
        self.environ = environ
        self.files = os.pathsep.join(config.files)

    def endpoint(self, context: str, master: str) -> Endpoint | None:
        name = context or self.config.current_context
        if not name and master:
            return plain_endpoint(master)
        if not name:
            known = _known("contexts", self.config.contexts)
            text = f"expected the name of the context to use; {known}"
            self.problems.append(Problem(f"{self.files}: current-context", text))
            return None
        place = f"{self.files}: {'contexts' if context else 'current-context'}"
        entry = self._find("context", name, self.config.contexts, place)
        if entry is None:
            return None
        chosen = Fields(entry, self.problems)
        cluster = self._refer(chosen, "cluster", self.config.clusters, optional=bool(master))
        user = self._refer(chosen, "user", self.config.users, optional=True)
        if cluster is None or user is None:
            return None
        return self._connect(cluster, user, master)

    def _refer(
        self, chosen: Fields, kind: str, entries: Entries, *, optional: bool
    ) -> Fields | None:
        """The cluster or the user that a context names; one that it need not name is empty."""
        name = chosen.text(kind)
        if not name and optional:
            return Fields(KubeconfigEntry(chosen.entry.file, chosen.entry.path, {}), self.problems)
        entry = self._find(kind, name, entries, chosen.place(kind))
        return Fields(entry, self.problems) if entry is not None else None

    def _connect(self, cluster: Fields, user: Fields, master: str) -> Endpoint | None:
        address = self._address(cluster, master)
        info = _cluster_info(cluster, master)
        if self.authority is not None or self.insecure:
            info = msgspec.structs.replace(info, authority=self.authority, insecure=self.insecure)
        if info.insecure and info.authority is not None:
            text = "given together with a certificate authority, expected one of them"
            cluster.report("insecure-skip-tls-verify", text)
        auth = read_user(user, info, self.environ)
        is_plain = address is not None and not address.secure
        tls = None if is_plain else self._tls(info, auth)
        # Credentials are not sent over plain http; impersonation headers are.
        inner = WithCertificates(auth.credentials, tls.renew) if tls is not None else None
        credentials = impersonated(user, inner)
        if address is None or self.problems:
            return None
        fields = {"host": address.host, "cluster": cluster.place(), "user": user.place()}
        if is_plain and not auth.is_anonymous:
            log.warning("credentials are not sent over plain http", extra=fields)
        if tls is not None and info.insecure:
            log.warning("the certificate of the API server is not verified", extra=fields)
        return Endpoint(
            host=address.host,
            port=address.port,
            prefix=address.prefix,
            tls=tls,
            server_name=info.tls_server_name,
            proxy=info.proxy,
            credentials=credentials,
        )

    def _address(self, cluster: Fields, master: str) -> Address | None:
        server = master or cluster.text("server")
        place = "--master" if master else cluster.place("server")
        try:
            return parse_server(server)
        except ValueError as error:
            self.problems.append(Problem(place, str(error)))
            return None

    def _tls(self, info: ClusterInfo, user: AuthInfo) -> ReloadingTls | None:
        try:
            return ReloadingTls(
                authority=info.authority,
                identity=user.identity,
                insecure=info.insecure,
                given=user.plugin.identity if user.plugin is not None else None,
            )
        except ConfigError as error:
            self.problems.extend(error.problems)
            return None

    def _find(self, kind: str, name: str, entries: Entries, place: str) -> KubeconfigEntry | None:
        if name in entries:
            return entries[name]
        known = _known(f"{kind}s", entries)
        text = f'there is no {kind} "{name}"' if name else f"expected the name of a {kind}"
        self.problems.append(Problem(place, f"{text}; {known}"))
        return None


def _cluster_info(cluster: Fields, master: str) -> ClusterInfo:
    proxy = cluster.text("proxy-url")
    try:
        parse_proxy(proxy)
    except ValueError:
        cluster.report("proxy-url", "expected http://host:port or https://host:port")
    return ClusterInfo(
        server=master or cluster.text("server"),
        # The name belongs to the server that is not asked now.
        tls_server_name="" if master else cluster.text("tls-server-name"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        authority=read_pem(cluster, "certificate-authority"),
        proxy=proxy,
        disable_compression=cluster.flag("disable-compression"),
        config=_plugin_extension(cluster),
    )


def _plugin_extension(cluster: Fields) -> Any:
    for item in cluster.sections("extensions"):
        if item.text("name") == _EXEC_EXTENSION:
            return item.entry.fields.get("extension")
    return None


def _known(kinds: str, entries: Entries) -> str:
    return f"known {kinds}: {', '.join(sorted(entries))}" if entries else f"there are no {kinds}"
