"""How an extender of a configuration is reached, and what is wrong with it."""

from __future__ import annotations

import pytest

from mooring import config as cfg
from mooring.errors import ConfigError
from mooring.extender.calling.connecting import connect, documents_for


def connected(*extenders: cfg.Extender) -> None:
    connect(extenders, documents_for(extenders), user_agent="tests")


def test_every_extender_that_can_not_be_reached_is_named() -> None:
    half, damaged = cfg.ExtenderTLS(cert_file="cert.pem"), cfg.ExtenderTLS(ca_data=b"nonsense")
    extenders = (
        cfg.Extender(url_prefix="ftp://somewhere", filter_verb="filter"),
        cfg.Extender(url_prefix="http://127.0.0.1:1", filter_verb="filter"),
        cfg.Extender(url_prefix="https://127.0.0.1:1", filter_verb="filter", tls_config=half),
        cfg.Extender(url_prefix="https://127.0.0.1:1", filter_verb="filter", tls_config=damaged),
    )
    with pytest.raises(ConfigError) as caught:
        connected(*extenders)
    first, second, third = map(str, caught.value.problems)
    assert first.startswith("extenders[0].urlPrefix: ")
    assert second == (
        "extenders[2].tlsConfig.keyFile: certificate and key belong together, and one of them"
        " is missing"
    )
    assert third.startswith("extenders[3].tlsConfig.caData: ")
