"""From `extenders:` of a configuration to extenders that can be called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring import config as cfg
from mooring.api import core
from mooring.client.endpoint import Endpoint, Tls, parse_server
from mooring.client.http import HttpTransport, OnAnswer
from mooring.client.raw_objects import RawObjects
from mooring.client.tls import Identity, Pem, ReloadingTls
from mooring.client.transport import NewFence
from mooring.errors import ConfigError, Problem
from mooring.extender.calling.caller import Documents, ExtenderCaller
from mooring.extender.calling.chain import Extenders
from mooring.extender.wire import VERBS
from mooring.observe.family import MetricValue


def documents_for(extenders: Sequence[cfg.Extender]) -> Documents:
    """The raw JSON to keep, so that these extenders get complete objects.

    Of pending pods if there are extenders; of running pods only for one that gets victims in full;
    of nodes only for one that is not nodeCacheCapable.
    """
    if not extenders:
        return Documents()
    full = [one for one in extenders if not one.node_cache_capable]
    asked = {verb for verb in VERBS if any(map(verb.path_at, full))}
    all_pods = any(verb.sends_running_pods for verb in asked)
    asks_nodes = any(verb.sends_nodes for verb in asked)
    pods: RawObjects[core.Pod] = RawObjects(lambda pod: all_pods or not pod.spec.node_name)
    return Documents(pods, RawObjects() if asks_nodes else None)


def connect(
    extenders: Iterable[cfg.Extender],
    documents: Documents,
    *,
    user_agent: str,
    fence: NewFence | None = None,
    scoring: MetricValue | None = None,
    on_answer: OnAnswer | None = None,
) -> Extenders:
    """Build the extenders; ConfigError for unusable URLs and certificates."""
    callers: list[ExtenderCaller] = []
    problems: list[Problem] = []
    for index, extender in enumerate(extenders):
        try:
            transport = HttpTransport(
                _endpoint(extender, f"extenders[{index}]"),
                user_agent=user_agent,
                connect_timeout=extender.http_timeout.seconds,
                on_answer=on_answer,
            )
        except ConfigError as error:
            problems += error.problems
        else:
            callers.append(ExtenderCaller(extender, transport, documents))
    if problems:
        raise ConfigError(problems)
    return Extenders(callers, fence=fence, scoring=scoring)


def _endpoint(extender: cfg.Extender, path: str) -> Endpoint:
    try:
        address = parse_server(extender.url_prefix)
    except ValueError as error:
        raise ConfigError([Problem(f"{path}.urlPrefix", str(error))]) from error
    settings = extender.tls_config or cfg.ExtenderTLS()
    return Endpoint(
        host=address.host,
        port=address.port,
        prefix=address.prefix,
        tls=_tls(extender, settings, f"{path}.tlsConfig") if address.secure else None,
        server_name=settings.server_name,
    )


def _tls(extender: cfg.Extender, settings: cfg.ExtenderTLS, path: str) -> Tls:
    authority = _pem(f"{path}.caFile", settings.ca_file, settings.ca_data)
    certificate = _pem(f"{path}.certFile", settings.cert_file, settings.cert_data)
    key = _pem(f"{path}.keyFile", settings.key_file, settings.key_data)
    if (certificate is None) is not (key is None):
        missing = "keyFile" if key is None else "certFile"
        text = "certificate and key belong together, and one of them is missing"
        raise ConfigError([Problem(f"{path}.{missing}", text)])
    return ReloadingTls(
        authority=authority,
        identity=Identity(certificate, key) if certificate and key else None,
        # As in kube-scheduler: with enableHTTPS and without a CA, no certificate is verified.
        insecure=settings.insecure or (extender.enable_https and authority is None),
    )


def _pem(place: str, path: str, data: bytes) -> Pem | None:
    """Data goes before a file, as with kubeconfig files."""
    if data:
        return Pem(place.removesuffix("File") + "Data", data=data)
    return Pem(place, path) if path else None
