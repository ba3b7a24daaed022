import asyncio
from pathlib import Path
from typing import Any

from msgspec import Raw

from extender_basic import Basic
from mooring import config as cfg
from mooring.api.codec import encode
from mooring.api.core import Pod
from mooring.cluster.embedded import EmbeddedCluster
from mooring.extender.serving.app import App, Options
from mooring.extender.wire import ExtenderArgs, ExtenderBindingArgs, NodeList
from mooring.testing import check_plugin, node, pod

NAMES = ("node-1", "node-2", "node-3")
CONFIG = Path(__file__).with_name("config.yaml")


def ask(verb: str, payload: Any, *objects: Any) -> Any:
    """One question to an extender whose cluster holds some objects; with what came of them."""

    async def asking() -> Any:
        async with EmbeddedCluster(kubelets=False, controllers=()) as cluster:
            cluster.apply(*objects)
            client = cluster.client()
            app = App([Basic], connect=cluster.transport, options=Options(port=0))
            running = asyncio.create_task(app.run())
            await app.cluster.informers.wait_synced()
            asked = payload
            if verb == "bind":
                (there,) = [await client.get(Pod, "web", "default")]
                asked = ExtenderBindingArgs("web", "default", there.metadata.uid, "node-2")
            answer = await app.answers[verb](asked)
            app.stop()
            await running
            found = await client.get(Pod, "web", "default")
            return answer, found.spec.node_name

    return asyncio.run(asking())


NODES = tuple(node(name) for name in NAMES)
WHOLE = ExtenderArgs(
    pod=Raw(encode(pod("web").api)),
    nodes=NodeList(items=tuple(Raw(encode(one.api)) for one in NODES)),
)


def test_every_node_passes_as_it_came() -> None:
    answer, _ = ask("filter", WHOLE, pod("web"), *NODES)
    assert (answer.nodes, answer.failed_nodes, answer.error) == (WHOLE.nodes, {}, "")


def test_the_last_node_by_name_gets_most() -> None:
    answer, _ = ask("prioritize", WHOLE, pod("web"), *NODES)
    assert [(one.host, one.score) for one in answer] == [
        ("node-1", 0),
        ("node-2", 1),
        ("node-3", 2),
    ]


def test_bind_creates_the_binding() -> None:
    answer, where = ask("bind", None, pod("web"), *NODES)
    assert (answer.error, where) == ("", "node-2")


def test_the_configuration_names_what_is_served() -> None:
    (extender,) = cfg.load_file(CONFIG).extenders
    verbs = (extender.filter_verb, extender.prioritize_verb, extender.bind_verb)
    assert verbs == ("filter", "prioritize", "bind")


def test_basic_honours_the_contract() -> None:
    check_plugin(Basic)
