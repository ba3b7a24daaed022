from __future__ import annotations

import html
import inspect
import io
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from mooring.cli.demo import command, plugin, screen
from mooring.cli.demo import story as stories
from mooring.cli.demo.command import Setting, demo
from mooring.cli.demo.screen import Screen
from mooring.cli.demo.story import Story
from mooring.cluster.node_templates import NodeTemplate
from mooring.testing import pod


@pytest.fixture(scope="module")
def told() -> str:
    return _tell()


def _tell() -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert demo(console=console) == 0
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def _decisions(story: str) -> str:
    """Which pod went where and why.

    How long it took and how far the queue is may differ, and so may the random part of a pod's
    name: Events and pods draw from the same numbers, and which comes first is a matter of time.
    """
    timeless = re.sub(r"[\d.]+ (?=m?s\b)", "", story.partition("queue:")[0])
    return re.sub(r"\b(batch-\w+)-\w{5}\b", r"\1", timeless)


def test_places_the_rollout_by_the_rule_of_our_own(told: str) -> None:
    assert "class PreferSpot(Score)" in told
    assert "6 pods run: 6 on spot machines, 0 on others" in told


@pytest.mark.parametrize("width", [80, 72])
def test_shows_the_rule_whole_on_a_narrow_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    Screen(console, is_live=False).introduce()
    assert isinstance(console.file, io.StringIO)
    lines = [line.strip("│ \n") for line in console.file.getvalue().splitlines()[1:-1]]
    source = inspect.getsource(plugin.PreferSpot).splitlines()
    assert [line.strip() for line in source] == lines


def test_spreads_evenly(told: str) -> None:
    assert "2 in zone a, 2 in zone b, 2 in zone c" in told


def test_says_why_a_pod_waits_and_binds_it_when_a_node_comes(told: str) -> None:
    assert "huge waits: 0/6 nodes are available: 6 Insufficient cpu." in told
    assert "huge is bound to large-0" in told


def test_preempts_for_what_is_urgent(told: str) -> None:
    assert re.search(r"batch-\S+ waits: 0/7 nodes are available: 7 Insufficient cpu", told)
    assert re.search(r"urgent is bound to spot-1; batch-\S+ made room\.", told)


def test_decides_the_same_again_with_the_same_seed(told: str) -> None:
    assert _decisions(_tell()) == _decisions(told)


def test_shows_nodes_queue_and_last_decisions(told: str) -> None:
    assert re.search(r"spot-1 b spot 5 █+ 4 of 4 ", told)
    assert re.search(r"queue: active \d+ backoff \d+ unschedulable \d+ gated 0", told)
    assert "urgent → spot-1 1 of 1 nodes fit" in told


def test_ends_with_numbers(told: str) -> None:
    numbers = re.search(
        r"(\d+) binds on 7 nodes in [\d.]+ s, [\d.]+ ms per decision: (\d+) pods have a node,"
        r" (\d+) wait",
        told,
    )
    assert numbers is not None
    assert int(numbers[2]) > 6 + 6
    assert int(numbers[3]) > 0


def test_picture_for_the_readme_is_whole_and_needs_nothing_from_the_network() -> None:
    root = Path(__file__).resolve().parents[2]
    picture = (root / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    assert not re.search(r"@font-face|url\(\s*[\"']?https?:|@import|href=\"https?:", picture)
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", picture)).split())
    for words in ("PreferSpot", "made room", "queue: active", "→ spot-1", "binds on 7 nodes"):
        assert words in shown


def test_tells_of_devices_that_are_claimed_awaited_and_given_back() -> None:
    console = Console(file=io.StringIO(), width=120, highlight=False)
    assert demo(story="devices", console=console) == 0
    assert isinstance(console.file, io.StringIO)
    told = " ".join(console.file.getvalue().split())
    assert "8 a100, 4 t4 on 3 of 5 nodes; class gpu." in told
    assert re.search(r"a100-0: gpu-2, gpu-3 train-", told)
    assert "tune waits: 0/5 nodes are available: 5 cannot allocate all claims." in told
    assert "asks for 4, 2 of 4 devices would do: 2 in use by default/train-" in told
    assert re.search(r"tune is bound to a100-\d\. a100-", told)
    assert "gpu-0, gpu-1, gpu-2, gpu-3 tune" in told


class Short(Story):
    """One pod, and a wish that is not granted."""

    def chapters(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self._one_pod, self._wish)

    async def _one_pod(self) -> None:
        self._cluster.apply(pod("web", labels={"app": "web"}))
        await self._wait(lambda: self._node_of("web"), "web has a node")

    async def _wish(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stories, "_PATIENCE", 0.15)  # longer than between two pictures
            await self._wait(lambda: False, "pigs fly")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> str:
    setting = Setting(Short, (NodeTemplate(name="node-{i}", count=1),))
    monkeypatch.setitem(command._STORIES, "short", setting)
    monkeypatch.setattr(screen, "_READING", 0.0)
    return "short"


def test_a_step_that_fails_is_told_and_makes_the_demo_fail(short: str) -> None:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    assert demo(story=short, console=console) == 1
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert "expected that pigs fly " in told
    assert "expected that web has a node" not in told


def test_a_terminal_shows_the_cluster_while_it_changes(short: str) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    demo(story=short, console=console)
    assert isinstance(console.file, io.StringIO)
    before, _, after = console.file.getvalue().partition("web")
    assert "\x1b[" in before  # drawn over what was there
    assert "queue: active" in before
    assert re.match(r" +→ node-0 +1 of 1 nodes fit", after)


class Reader(io.StringIO):
    """Reads the kubeconfig that is offered, and presses Ctrl-C when all is told."""

    kubeconfig = ""

    def write(self, text: str) -> int:
        if file := re.search(r"KUBECONFIG=(\S+)", text):
            self.kubeconfig = Path(file[1]).read_text()
        if "open http" in text:
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_stays_for_kubectl_and_a_browser_until_ctrl_c(short: str) -> None:
    reader = Reader()
    demo(stay=True, story=short, console=Console(file=reader, width=100, highlight=False))
    told = reader.getvalue()
    assert "The cluster stays until Ctrl-C. Try:" in told
    assert "server: https://127.0.0.1:" in reader.kubeconfig
    assert re.search(r"open http://127.0.0.1:\d+/#token=\S+\n$", told)
    file = re.search(r"KUBECONFIG=(\S+)", told)
    assert file is not None
    assert not Path(file[1]).exists()
