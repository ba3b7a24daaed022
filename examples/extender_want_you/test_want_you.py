import asyncio
from pathlib import Path

import yaml
from msgspec import Raw
from want_you import WANTED, extender, want_you

from mooring import config as cfg
from mooring.api.codec import encode
from mooring.extender.serving.app import App, Options
from mooring.extender.wire import ExtenderArgs, ExtenderFilterResult
from mooring.testing import node, pod

FOLDER = Path(__file__).parent
NAMES = ("10-9-101-65", WANTED, "10-9-101-67")
WANTING = pod("wanting", labels={"want": "you"})


def test_wanting_pods_fit_one_node_and_others_all() -> None:
    assert want_you(WANTING, node(WANTED)) is True
    assert want_you(WANTING, node("10-9-101-65")) == "node is not the one you want"
    assert want_you(pod("other"), node("10-9-101-65")) is True
    assert want_you(pod("other", labels={"want": "me"}), node("10-9-101-65")) is True


def test_answers_names_with_names_and_needs_no_cluster() -> None:
    async def ask() -> ExtenderFilterResult:
        app = App(extender.plugins, options=Options(cluster=False))
        asked = ExtenderArgs(pod=Raw(encode(WANTING.api)), node_names=NAMES)
        answer: ExtenderFilterResult = await app.answers["filter"](asked)
        return answer

    answer = asyncio.run(ask())
    assert (answer.node_names, answer.nodes, answer.error) == ((WANTED,), None, "")
    assert answer.failed_nodes == dict.fromkeys(
        ("10-9-101-65", "10-9-101-67"), "node is not the one you want"
    )


def test_both_configurations_mean_this_extender() -> None:
    (of_today,) = cfg.load_file(FOLDER / "config.yaml").extenders
    policy = yaml.safe_load((FOLDER / "scheduler-policy.yaml").read_text())
    (of_old,) = policy["extenders"]
    assert of_today.url_prefix == of_old["urlPrefix"]
    assert (of_today.filter_verb, of_today.node_cache_capable) == ("filter", True)
    assert (of_old["filterVerb"], of_old["nodeCacheCapable"]) == ("filter", True)
    main = yaml.safe_load((FOLDER / "scheduler-config.yaml").read_text())
    assert main["algorithmSource"]["policy"]["file"]["path"].endswith("scheduler-policy.yaml")
