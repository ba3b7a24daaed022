"""The `user` of a kubeconfig: its client certificate, and the headers that authenticate it.

As in client-go, a token, a password or a certificate has precedence over an exec plugin, and a
readable token file over a token.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from mooring.client import exec_plugin
from mooring.client._kubeconfig_file import Fields, resolved
from mooring.client.credentials import (
    BasicAuth,
    BearerToken,
    Impersonation,
    TokenFile,
    token_problem,
)
from mooring.client.endpoint import Credentials
from mooring.client.exec_plugin import ClusterInfo, ExecPlugin, ExecSettings
from mooring.client.tls import Identity, Pem


class AuthInfo(msgspec.Struct, frozen=True):
    """How a user authenticates; with neither, the server treats it as anonymous."""

    credentials: Credentials | None = None
    identity: Identity | None = None
    plugin: ExecPlugin | None = None  # the credentials, when they come with a certificate

    @property
    def is_anonymous(self) -> bool:
        return self.credentials is None and self.identity is None


def read_user(user: Fields, cluster: ClusterInfo, environ: Mapping[str, str]) -> AuthInfo:
    """Make credentials; what is wrong is reported to the problems of `user`."""
    credentials = _password_or_token(user)
    identity = _identity(user)
    settings = _exec_settings(user, cluster)
    if user.entry.fields.get("auth-provider") is not None:
        text = "was removed from Kubernetes (azure and gcp in v1.26); expected exec in its place"
        user.report("auth-provider", text)
    if settings is None or credentials is not None or identity is not None:
        return AuthInfo(credentials, identity)
    plugin = ExecPlugin(settings, environ=environ)
    return AuthInfo(plugin, None, plugin)


def impersonated(user: Fields, inner: Credentials | None) -> Credentials | None:
    """The credentials with the headers for `as` and its companions, if there are any."""
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    section = user.inner("as-user-extra")
    extra = {str(key): section.texts(key) for key in section.entry.fields} if section else {}
    if not name:
        if uid or groups or extra:
            text = "expected a user to impersonate, because as-uid, as-groups or as-user-extra is"
            user.report("as", f"{text} given")
        return inner
    values = {"as": (name,), "as-uid": (uid,), "as-groups": groups}
    values |= {f"as-user-extra.{key}": texts for key, texts in extra.items()}
    for key, texts in values.items():
        if any(ord(letter) < 32 or ord(letter) == 127 for text in texts for letter in text):
            user.report(key, "expected no line breaks or other control characters")
    return Impersonation(inner, user=name, uid=uid, groups=groups, extra=extra)


def read_pem(fields: Fields, key: str) -> Pem | None:
    """A file, or the same field with -data; None if neither is given or the data is no good."""
    data_key = f"{key}-data"
    path, data = fields.file(key), fields.data(data_key)
    if path and data:
        fields.report(key, f"given together with {data_key}, expected one of them")
    if data:
        return Pem(fields.place(data_key), data=data)
    return Pem(fields.place(key), path=path) if path else None


def _password_or_token(user: Fields) -> Credentials | None:
    token, path = user.text("token"), user.file("tokenFile")
    username, password = user.text("username"), user.text("password")
    if (token or path) and (username or password):
        text = "more than one way to authenticate: a token and a password, expected one of them"
        user.report("", text)
    if token and (problem := token_problem(token)):
        user.report("token", problem)
    if path:
        file = TokenFile(path, first=token)
        if file.trouble:
            user.report("tokenFile", f"{path}: {file.trouble}")
        return file
    if token:
        return BearerToken(token)
    return BasicAuth(username, password) if username or password else None


def _identity(user: Fields) -> Identity | None:
    certificate = read_pem(user, "client-certificate")
    key = read_pem(user, "client-key")
    for mine, other in (("client-certificate", "client-key"), ("client-key", "client-certificate")):
        if _is_given(user, mine) and not _is_given(user, other):
            user.report(other, f"expected, because {mine} is given: neither is of use alone")
    return Identity(certificate, key) if certificate is not None and key is not None else None


def _is_given(fields: Fields, key: str) -> bool:
    return any(fields.entry.fields.get(name) for name in (key, f"{key}-data"))


def _exec_settings(user: Fields, cluster: ClusterInfo) -> ExecSettings | None:
    section = user.inner("exec")
    if section is None:
        return None
    command, version = section.text("command"), section.text("apiVersion")
    if not command:
        section.report("command", "expected a command to run")
    if os.sep in command:
        command = resolved(command, section.entry.file)
    if version not in exec_plugin.API_VERSIONS:
        section.report("apiVersion", f"expected one of: {', '.join(exec_plugin.API_VERSIONS)}")
    mode = section.text("interactiveMode")
    if not mode and version != exec_plugin.API_VERSIONS[0]:
        mode = "IfAvailable"  # the field is younger than the older version
    if mode not in exec_plugin.INTERACTIVE_MODES:
        section.report(
            "interactiveMode", f"expected one of: {', '.join(exec_plugin.INTERACTIVE_MODES)}"
        )
    return ExecSettings(
        command=command,
        api_version=version,
        args=section.texts("args"),
        env=_environment(section),
        install_hint=section.text("installHint"),
        interactive_mode=mode,
        cluster=cluster if section.flag("provideClusterInfo") else None,
    )


def _environment(section: Fields) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for item in section.sections("env"):
        name = item.text("name")
        if not name or "=" in name or "\0" in name:
            item.report("name", "expected the name of a variable")
        found.append((name, item.text("value")))
    return tuple(found)
