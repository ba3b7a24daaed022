from __future__ import annotations

import json
import textwrap

import pytest

from mooring import config as cfg
from mooring.config.manifests import leading_comments
from mooring.errors import ConfigError

GROUP = "kubescheduler.config.k8s.io"
CONFIG = f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n"
OLD = f"apiVersion: {GROUP}/v1alpha1\nkind: KubeSchedulerConfiguration\n"
POLICY = '{"kind": "Policy", "apiVersion": "v1", "priorities": []}'
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


def config_map(data: dict[str, str], name: str = "c") -> str:
    lines = "".join(f"  {key}: |\n{textwrap.indent(text, '    ')}\n" for key, text in data.items())
    metadata = f"metadata: {{name: {name}, namespace: kube-system}}"
    return f"apiVersion: v1\nkind: ConfigMap\n{metadata}\ndata:\n{lines}"


def read(*documents: str) -> cfg.Loaded:
    return cfg.read_text("---\n".join(documents), "all.yaml")


def refusal(*documents: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(*documents)
    return str(caught.value)


def test_finds_the_configuration_in_a_config_map_among_other_things() -> None:
    assert read(SERVICE, config_map({"a": "x: 1", "any.yaml": CONFIG})).config.parallelism == 3
    assert read(SERVICE, CONFIG).config.parallelism == 3
    listed = {
        "kind": "List",
        "items": [{"kind": "ConfigMap", "data": {"c": CONFIG}}],
    }
    assert read(json.dumps(listed)).config.parallelism == 3


def test_finds_a_policy_under_its_key_or_any_other() -> None:
    for key in ("policy.cfg", "anything"):
        assert read(config_map({key: POLICY})).written_as == "Policy"


def test_does_not_take_policies_of_other_groups_for_a_configuration() -> None:
    audit = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n"
    assert read(audit, config_map({"audit": audit, "own": CONFIG})).config.parallelism == 3
    assert refusal(SERVICE, config_map({"audit": audit})).endswith("found only Service, ConfigMap")


def test_finds_the_policy_that_is_referred_to_in_the_same_file() -> None:
    source = "algorithmSource: {policy: {file: {path: /etc/scheduler/policy.json}}}\n"
    loaded = read(config_map({"config.yaml": OLD + source, "policy.json": POLICY}))
    assert "the key policy.json of the same ConfigMap" in loaded.notes[0].text
    source = "algorithmSource: {policy: {configMap: {namespace: kube-system, name: p}}}\n"
    loaded = read(config_map({"c": OLD + source}), config_map({"policy.cfg": POLICY}, "p"))
    assert "enabled" not in loaded.document["profiles"][0]["plugins"]["score"]
    assert loaded.written_as == f"{GROUP}/v1alpha1"


def test_wants_exactly_one_configuration() -> None:
    both = config_map({"a": CONFIG, "b": CONFIG})
    assert refusal(both) == (
        "all.yaml: expected one configuration, found 2: ConfigMap c, a; ConfigMap c, b"
    )
    assert refusal(SERVICE, SERVICE).startswith(
        "all.yaml: expected a KubeSchedulerConfiguration or a Policy, also inside a ConfigMap"
    )


def test_names_the_place_inside_the_file_in_what_is_wrong() -> None:
    broken = config_map({"own": CONFIG + "a: b: c\n"})
    assert refusal(broken).startswith("all.yaml:9: ")
    twice = refusal(SERVICE, CONFIG + "parallelism: 4\n")
    assert twice == "parallelism: duplicate key on line 8, first set on line 7"


def test_says_the_line_of_the_file_for_a_problem_inside_a_config_map() -> None:
    text = f"{SERVICE}---\n{config_map({'own': CONFIG + 'extnders: []'})}"
    with pytest.raises(ConfigError) as refused:
        cfg.load_text(text, "all.yaml")
    (line,) = refused.value.lines
    number, rest = line.removeprefix("all.yaml:").split(": ", 1)
    assert text.splitlines()[int(number) - 1].strip() == "extnders: []"
    assert rest.startswith("extnders: unknown field")


def test_names_the_key_where_a_config_map_does_not_keep_the_lines() -> None:
    quoted = json.dumps(CONFIG + "extnders: []\n")
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{own: {quoted}}}\n"
    with pytest.raises(ConfigError) as refused:
        cfg.load_text(text, "all.yaml")
    (line,) = refused.value.lines
    assert line.startswith("all.yaml: ConfigMap c, own: extnders: unknown field")


def test_every_reader_finds_it() -> None:
    assert cfg.load_text(f"{CONFIG}---\n{SERVICE}").parallelism == 3
    assert cfg.load_text(config_map({"a": CONFIG})).parallelism == 3
    assert refusal(f"{CONFIG}---\n{CONFIG}").endswith("found 2: line 1; line 5")


def test_knows_the_comment_that_a_text_opens_with() -> None:
    assert leading_comments("# a\n#b\n\n# c\nx: 1\n") == "# a\n#b\n"
    assert leading_comments("\ufeff# a\r\nx: 1\n") == "# a\n"
    assert leading_comments("x: 1\n# a\n") == ""
