"""The endpoint inside a pod, and the choice between it, --kubeconfig and --master."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mooring.client.credentials import TokenFile, WithCertificates
from mooring.client.endpoint import Endpoint
from mooring.client.kubeconfig import default_files, load_kubeconfig, plain_endpoint
from mooring.client.tls import Pem, ReloadingTls
from mooring.errors import ConfigError, Problem

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"
_OUTSIDE: Final = "not running in a cluster"
_ADVICE: Final = "give --kubeconfig"


def in_cluster(environ: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Endpoint:
    """The API server of the cluster this process runs in, with its service account.

    Raises ConfigError that says what is missing.
    """
    if not is_in_cluster(environ):
        raise ConfigError([Problem("", f"{_OUTSIDE}: {_HOST} and {_PORT} are not set; {_ADVICE}")])
    problems: list[Problem] = []
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "")
    if not host:
        problems.append(Problem("", f"{_OUTSIDE}: {_HOST} is not set"))
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        found = "found another text" if port else "it is not set"
        problems.append(Problem("", f"{_OUTSIDE}: {_PORT}: expected a port number, {found}"))
    token = TokenFile(str(folder / "token"))
    if token.trouble:
        hint = "is automountServiceAccountToken false?"
        problems.append(Problem("", f"{_OUTSIDE}: {token.path}: {token.trouble}; {hint}"))
    try:
        tls = ReloadingTls(authority=Pem(_OUTSIDE, path=str(folder / "ca.crt")))
    except ConfigError as error:
        raise ConfigError(_advised([*problems, *error.problems])) from error
    if problems:
        raise ConfigError(_advised(problems))
    return Endpoint(
        host=host.strip("[]"),
        port=int(port),
        tls=tls,
        credentials=WithCertificates(token, tls.renew),
    )


def is_in_cluster(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a kubelet started us, or at least part of what it says is there."""
    return bool(environ.get(_HOST) or environ.get(_PORT))


def _advised(problems: list[Problem]) -> list[Problem]:
    return [Problem(found.path, f"{found.message}; {_ADVICE}") for found in problems]


def find_endpoint(
    kubeconfig: str = "",
    master: str = "",
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    folder: Path = SERVICE_ACCOUNT,
) -> Endpoint:
    """The endpoint that the flags mean, as for kube-scheduler.

    Without any, the cluster this process runs in; outside of a cluster, what kubectl would use.
    """
    if kubeconfig or context:
        return load_kubeconfig(kubeconfig, context=context, master=master, environ=environ)
    if master:
        return plain_endpoint(master)
    if is_in_cluster(environ):
        return in_cluster(environ, folder)
    files = default_files(environ)
    if any(os.path.exists(file) for file in files):
        return load_kubeconfig(environ=environ)
    text = f"{_OUTSIDE}: {_HOST} and {_PORT} are not set, and there is no {' or '.join(files)}"
    raise ConfigError([Problem("", f"{text}; {_ADVICE}")])
