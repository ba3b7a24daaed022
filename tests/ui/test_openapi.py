"""The description of /lens/v1 that is checked in."""

import msgspec
from tests.ui.test_lens import World

from mooring.ui.lens import openapi
from mooring.ui.openapi import document, text


def test_it_is_that_of_the_structs() -> None:
    assert openapi().decode() == text(), "python -m mooring.ui.openapi > …/lens-v1.openapi.json"


def test_every_reference_is_there_and_it_is_served() -> None:
    described = document()
    body = msgspec.json.encode(described).decode()
    wanted = {part.partition('"')[0] for part in body.split('"#/components/schemas/')[1:]}
    assert wanted <= set(described["components"]["schemas"])
    assert World().get("/lens/v1/openapi.json").json == msgspec.json.decode(text())
