"""Another server than the API server, for the user of a kubeconfig or of flags.

The endpoints of a running scheduler authenticate as the cluster does: by a bearer token or a client
certificate. Their own certificate is often not signed by the cluster's CA, so that can be named.
"""

from __future__ import annotations

import os
from typing import ClassVar

from mooring.client._confidential import Confidential
from mooring.client.credentials import BearerToken, WithCertificates, token_problem
from mooring.client.endpoint import Endpoint, parse_server
from mooring.client.errors import status_error
from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import default_files, load_kubeconfig
from mooring.client.tls import Identity, Pem, ReloadingTls
from mooring.client.transport import MAX_ANSWER, Request
from mooring.errors import ConfigError, Problem


class ServerAccess(Confidential, frozen=True, kw_only=True):
    """Flags, with the names they have in kubectl. A token or a certificate replaces the user."""

    secret: ClassVar[tuple[str, ...]] = ("token",)

    kubeconfig: str = ""
    context: str = ""
    token: str = ""
    client_certificate: str = ""
    client_key: str = ""
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False


def find_server(url: str, access: ServerAccess) -> Endpoint:
    """The endpoint of a server; raises ConfigError that names the flag."""
    authority = None
    if access.certificate_authority:
        authority = Pem("--certificate-authority", path=access.certificate_authority)
    _check(url, access)
    insecure = access.insecure_skip_tls_verify
    if access.token or access.client_certificate:
        return _of_flags(url, access, authority)
    named = access.kubeconfig or access.context
    if not (named or any(map(os.path.exists, default_files()))):
        return _of_flags(url, access, authority)
    return load_kubeconfig(
        access.kubeconfig,
        context=access.context,
        master=url,
        authority=authority,
        insecure=insecure,
    )


def _check(url: str, access: ServerAccess) -> None:
    problems: list[Problem] = []
    try:
        address = parse_server(url)
    except ValueError as error:
        problems.append(Problem("--from", str(error)))
    else:
        if not address.secure and (access.token or access.client_certificate):
            problems.append(Problem("--from", "credentials are not sent over plain http"))
    if access.token and (wrong := token_problem(access.token)):
        problems.append(Problem("--token", wrong))
    if bool(access.client_certificate) != bool(access.client_key):
        text = "expected both --client-certificate and --client-key"
        problems.append(Problem("--client-certificate", text))
    if access.certificate_authority and access.insecure_skip_tls_verify:
        text = "given together with --certificate-authority, expected one of them"
        problems.append(Problem("--insecure-skip-tls-verify", text))
    if problems:
        raise ConfigError(problems)


def _of_flags(url: str, access: ServerAccess, authority: Pem | None) -> Endpoint:
    address = parse_server(url)
    if not address.secure:
        return Endpoint(address.host, address.port, address.prefix)
    identity = None
    if access.client_certificate:
        certificate = Pem("--client-certificate", path=access.client_certificate)
        identity = Identity(certificate, Pem("--client-key", path=access.client_key))
    tls = ReloadingTls(
        authority=authority, identity=identity, insecure=access.insecure_skip_tls_verify
    )
    token = BearerToken(access.token) if access.token else None
    return Endpoint(
        address.host,
        address.port,
        address.prefix,
        tls=tls,
        credentials=WithCertificates(token, tls.renew),
    )


async def get(
    endpoint: Endpoint,
    path: str,
    *,
    user_agent: str,
    seconds: float = 30.0,
    max_answer: int = MAX_ANSWER,
) -> bytes:
    """The body of one answer; raises ApiError, also for an answer that is a failure."""
    transport = HttpTransport(endpoint, user_agent=user_agent)
    request = Request(method="GET", path=path, timeout=seconds, max_answer=max_answer)
    try:
        answer = await transport.send(request)
    finally:
        await transport.close()
    if answer.status >= 300:
        raise status_error(answer.status, answer.body, answer.headers)
    return answer.body
