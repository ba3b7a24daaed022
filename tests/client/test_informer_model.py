"""Whatever is written and whatever fails: in the end the store is what the server has."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.client.client_rig import ClientRig, Mirror
from tests.faulty_transport import EXPIRED, EndAtOnce, Hang, Refuse, Vanish
from tests.sizes import sized

from mooring.api.core import Pod

NAMES = st.sampled_from([f"p{number}" for number in range(12)])
FAULTS = st.sampled_from(
    [
        Refuse(429, "TooManyRequests", "busy", retry_after=3),
        Refuse(429, "TooManyRequests", "busy"),
        Refuse(500, "InternalError", "broken"),
        Refuse(503, "ServiceUnavailable", "starting", retry_after=1),
        Refuse(403, "Forbidden", "no rule"),
        EXPIRED,
        Vanish(sent=True),
        Vanish(sent=False),
        Hang(),
    ]
)
UNREADABLE = {"containers": "none"}


class FollowedServer(RuleBasedStateMachine):
    """A server that is written to and suffers, and an informer that follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = ClientRig()
        self.server = self.rig.server
        self.spoilt: set[str] = set()  # names of pods that cannot be decoded

    @initialize(
        names=st.sets(NAMES), latency=st.sampled_from([0.0, 0.3, 4.0]), in_protobuf=st.booleans()
    )
    def begin(self, names: set[str], latency: float, in_protobuf: bool) -> None:
        self.server.form.in_protobuf = in_protobuf
        for name in sorted(names):
            self.server.put(Pod, name)
        self.server.latency = latency
        self.mirror = Mirror(self.rig)

    # --- writes --------------------------------------------------------------------------------

    @rule(name=NAMES, phase=st.sampled_from(["Pending", "Running"]))
    def put(self, name: str, phase: str) -> None:
        self.server.put(Pod, name, status={"phase": phase}, spec={})
        self.spoilt.discard(name)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if self.server.uid(Pod, name) is not None:
            self.server.delete(Pod, name)
            self.spoilt.discard(name)

    @rule(name=NAMES)
    def make_anew(self, name: str) -> None:
        self.delete(name)
        self.server.put(Pod, name)

    @rule(name=NAMES)
    def spoil(self, name: str) -> None:
        self.server.put(Pod, name, spec=UNREADABLE)
        self.spoilt.add(name)

    # --- time and faults -----------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0, 0.3, 0.9, 2, 10, 70, 650]))
    def wait(self, seconds: float) -> None:
        self.rig.advance(seconds)

    @rule(latency=st.sampled_from([0.0, 0.4, 5.0]))
    def slow_down(self, latency: float) -> None:
        self.server.latency = latency

    @rule(size=st.sampled_from([1, 13, 100, 10_000]))
    def chop(self, size: int) -> None:
        self.server.chop = lambda data: [data[i : i + size] for i in range(0, len(data), size)]

    @rule(verb=st.sampled_from(["list", "watch"]), faults=st.lists(FAULTS, max_size=4))
    def fail(self, verb: str, faults: list[Refuse | Vanish | Hang]) -> None:
        self.server.fail(verb, *faults)

    @rule(count=st.integers(1, 4))
    def end_at_once(self, count: int) -> None:
        self.server.fail("watch", *[EndAtOnce()] * count)

    @rule(verb=st.sampled_from(["list", "watch"]))
    def forbid(self, verb: str) -> None:
        self.server.forbidden.add((verb, Pod))

    @rule(what=st.sampled_from(["cut", "end", "silence", "report"]))
    def suffer(self, what: str) -> None:
        getattr(self.server, what)()

    @rule()
    def compact(self) -> None:
        self.server.store.compact()

    @rule(
        line=st.sampled_from([b"<html>\n", b'{"type":"AD', b"\xff\n", b'{"type":"X","object":1}\n'])
    )
    def babble(self, line: bytes) -> None:
        self.server.say(line)

    @rule(error=st.sampled_from([Refuse(500, "InternalError"), Refuse(429, retry_after=2)]))
    def report_an_error(self, error: Refuse) -> None:
        self.server.report(error)

    # --- truth ---------------------------------------------------------------------------------

    @rule()
    def calm_down(self) -> None:
        self.server.calm()
        self.rig.advance(700)  # a watch that hangs is given up after 630 seconds at most
        assert self.mirror.informer.problem == ""
        assert self.mirror.informer.reflector.undecodable == len(self.spoilt)
        for name in self.spoilt:
            known = self.mirror.informer.get(f"default/{name}")
            assert known is None or known.uid == self.server.uid(Pod, name)
        for name in sorted(self.spoilt):
            self.server.put(Pod, name, spec={})
        self.spoilt.clear()
        self.rig.settle()
        self.mirror.assert_true()

    def teardown(self) -> None:
        try:
            if hasattr(self, "mirror"):
                self.calm_down()
        finally:
            self.rig.__exit__()


TestFollowedServer = FollowedServer.TestCase
TestFollowedServer.settings = settings(
    max_examples=sized(40), stateful_step_count=40, deadline=None
)
