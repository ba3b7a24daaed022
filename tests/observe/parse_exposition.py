"""Reads the Prometheus text format, strictly: what breaks its rules fails the test."""

import re
from typing import Any

import msgspec

_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(?P<name>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_HELP = re.compile(r"# HELP (?P<name>\S+) (?:\[(?P<stability>[A-Z]+)\] )?(?P<text>.*)")
_ENDINGS = ("_bucket", "_sum", "_count")


class Sample(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str]
    value: float
    text: str  # the value as it was written


class Seen(msgspec.Struct):
    """One family as it was scraped."""

    name: str
    help: str
    stability: str
    type: str = ""
    samples: list[Sample] = []

    @property
    def labels(self) -> list[str]:
        return sorted({name for s in self.samples for name in s.labels} - {"le"})

    @property
    def buckets(self) -> list[str]:
        bounds = (s.labels["le"] for s in self.samples if s.name.endswith("_bucket"))
        return list(dict.fromkeys(bounds))


def read(text: str) -> dict[str, Seen]:
    """The families of a scrape, by name."""
    families: dict[str, Seen] = {}
    assert text.endswith("\n")
    current = Seen("", "", "")
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP"):
            found = _HELP.fullmatch(line)
            assert found is not None, line
            assert found["name"] not in families, f"{found['name']} comes twice"
            current = Seen(found["name"], found["text"], found["stability"] or "")
            families[current.name] = current
        elif line.startswith("# TYPE"):
            _, _, name, kind = line.split(" ")
            assert name == current.name
            current.type = kind
        else:
            current.samples.append(_sample(line, current))
    return families


def _sample(line: str, family: Seen) -> Sample:
    found = _SAMPLE.fullmatch(line)
    assert found is not None, line
    expected = [family.name] if family.type != "histogram" else []
    if family.type in ("histogram", "summary"):
        expected += [family.name + ending for ending in _ENDINGS]
    assert found["name"] in expected, line
    labels = _labels(found["labels"] or "")
    return Sample(found["name"], labels, float(found["value"]), found["value"])


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        assert found is not None, text
        labels[found["name"]] = _unescaped(found["value"])
        place = found.end()
    return labels


def _unescaped(text: str) -> str:
    known: dict[str, Any] = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
    return re.sub(r'\\["\\n]', lambda found: str(known[found[0]]), text)
