"""Whatever happens in whatever order, the queue agrees with a plain table."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.queue.builders import START, World, pod
from tests.queue.model import EVENTS, Row, Table, registrations
from tests.sizes import sized

from mooring.cache.pods import Pod
from mooring.framework.events import ANY_RESOURCE, Action, ClusterEvent
from mooring.framework.results import QueuedPod
from mooring.queue.options import QueueOptions

NAMES = st.sampled_from("abcd")
PRIORITIES = st.integers(0, 2)
PLUGINS = st.frozensets(st.sampled_from(["A", "B", "C", "Deaf"]), max_size=2)
PENDING = st.frozensets(st.sampled_from("AB"), max_size=1)
WILL = st.sampled_from(["yes", "no"])
ALL = ClusterEvent(ANY_RESOURCE, Action.ALL, "Test")


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(*registrations(), options=QueueOptions(max_in_unschedulable=30))
        self.table = Table(START)
        self.flights: dict[str, QueuedPod] = {}
        self.lives = 0

    @initialize(names=st.lists(NAMES, min_size=2, unique=True), priority=PRIORITIES)
    def populate(self, names: list[str], priority: int) -> None:
        for name in names:
            self.add(name, priority, "no")

    def born(self, name: str, priority: int, will: str) -> Pod:
        self.lives += 1
        return pod(name, uid=f"{name}-{self.lives}", priority=priority, labels={"will": will})

    def expect_new(self, made: Pod) -> None:
        held = self.table.named(made.name)
        if held is not None:
            del self.table.rows[held.pod.uid]
        row = self.table.rows[made.uid] = Row(made, self.table.now)
        self.table.settle(row, "now")

    @rule(name=NAMES, priority=PRIORITIES, will=WILL)
    def add(self, name: str, priority: int, will: str) -> None:
        """Under a name that is taken this is the next life of the pod."""
        made = self.born(name, priority, will)
        self.world.queue.add(made)
        self.expect_new(made)

    @rule(name=NAMES, priority=PRIORITIES, will=WILL)
    def replace_life(self, name: str, priority: int, will: str) -> None:
        held = self.table.named(name)
        if held is not None:
            made = self.born(name, priority, will)
            self.world.queue.update(held.pod, made)
            self.expect_new(made)

    @rule(name=NAMES, priority=PRIORITIES, will=WILL)
    def update(self, name: str, priority: int, will: str) -> None:
        row = self.table.named(name)
        if row is not None:
            self.change(row, priority, will)

    @precondition(lambda self: self.flights)
    @rule(data=st.data(), will=WILL)
    def update_in_flight(self, data: st.DataObject, will: str) -> None:
        row = self.table.rows[data.draw(st.sampled_from(sorted(self.flights)))]
        self.change(row, row.pod.priority, will)

    def change(self, row: Row, priority: int, will: str) -> None:
        old = row.pod
        new = pod(old.name, uid=old.uid, priority=priority, labels={"will": will})
        self.world.queue.update(old, new)
        event = "Label" if old.labels != new.labels else "Nothing"
        if row.place == "flight":
            row.pod = self.flights[old.uid].pod = new
            for other in self.table.at("flight"):
                other.missed.append(event)
            return
        row.pod = new
        if row.place in ("unschedulable", "gated") and row.worth(event) != "no":
            self.table.settle(row, row.worth(event))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        row = self.table.named(name)
        if row is not None:
            self.world.queue.delete(row.pod)
            del self.table.rows[row.pod.uid]

    @rule()
    def pop(self) -> None:
        expected = self.table.next_row()
        queued = self.world.queue.pop()
        assert (queued and queued.pod) == (expected and expected.pod)
        if queued is not None and expected is not None:
            expected.attempts += 1
            assert queued.attempts == expected.attempts
            assert queued.pod.name not in self.table.closed or expected.place != "gated"
            expected.plugins = expected.pending = frozenset()
            expected.missed = []
            self.table.put(expected, "flight")
            self.flights[queued.pod.uid] = queued

    @precondition(lambda self: self.flights)
    @rule(data=st.data(), plugins=PLUGINS, pending=PENDING)
    def send_back(
        self, data: st.DataObject, plugins: frozenset[str], pending: frozenset[str]
    ) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flights)))
        self.world.send_back(self.flights.pop(uid), *plugins, pending=sorted(pending))
        row = self.table.rows[uid]
        if self.table.named(row.pod.name) is not None:
            del self.table.rows[uid]
            return
        row.since, row.plugins, row.pending = self.table.now, plugins, pending
        if row.rejectors:
            row.refused, row.errors = row.refused + 1, 0
        else:
            row.errors += 1
        worths = {row.worth(event) for event in row.missed} if row.rejectors else {"backoff"}
        self.table.settle(row, next((w for w in ("now", "backoff") if w in worths), "no"))
        assert row.place != "unschedulable" or worths <= {"no"}

    @precondition(lambda self: self.flights)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flights)))
        self.world.queue.done(uid)
        del self.flights[uid], self.table.rows[uid]

    @rule(event=st.sampled_from(sorted(EVENTS)))
    def move_some(self, event: str) -> None:
        self.world.queue.move_all(EVENTS[event], None, None)
        self.table.wake(self.table.at("unschedulable", "gated"), event)

    @rule()
    def move_everything(self) -> None:
        self.world.queue.move_all(ALL, None, None)
        self.table.wake(self.table.at("unschedulable", "gated"), "All")

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.world.queue.activate([f"ns/{name}"])
        row = self.table.named(name)
        if row is None:
            flying = [r for r in self.table.at("flight") if r.pod.name == name]
            if flying:
                flying[-1].missed.append("Mine")
        elif row.place == "backoff":
            self.table.put(row, "active")
        elif row.place != "active":
            self.table.settle(row, "now")

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 2.5, 31.0]))
    def wait(self, seconds: float) -> None:
        self.table.now += seconds
        self.world.time = self.table.now

    @rule()
    def flush_backoff(self) -> None:
        self.world.queue.flush_backoff()
        over = [row for row in self.table.at("backoff") if row.expiry < int(self.table.now)]
        for row in sorted(
            over, key=lambda r: (not r.rejectors, r.expiry, r.rejectors and -r.pod.priority)
        ):
            self.table.put(row, "active")

    @rule()
    def flush_unschedulable(self) -> None:
        self.world.queue.flush_unschedulable()
        waiting = self.table.at("unschedulable", "gated")
        stale = [row for row in waiting if self.table.now - row.since > 30]
        if stale:
            self.table.wake(stale, "All")

    @rule(name=NAMES)
    def turn_the_gate(self, name: str) -> None:
        if name in self.table.closed:
            self.table.closed.remove(name)
            self.world.open_gate(name)
        else:
            self.table.closed.add(name)
            self.world.close_gate(name)

    @invariant()
    def every_pod_is_in_one_place_and_it_is_the_right_one(self) -> None:
        expected = {row.pod.key: row.place for row in self.table.rows.values() if self.waits(row)}
        listed = self.world.queue.pending()
        assert {p.key: place for place, pods in listed.items() for p in pods} == expected
        assert len(self.world.queue) == sum(map(len, listed.values())) == len(expected)
        assert {key: self.world.queue.where(key) for key in expected} == expected

    @invariant()
    def every_waiting_pod_is_its_latest_version(self) -> None:
        listed = {p for pods in self.world.queue.pending().values() for p in pods}
        assert listed == {row.pod for row in self.table.rows.values() if self.waits(row)}

    @invariant()
    def flights_are_known_and_leave_nothing_behind(self) -> None:
        in_flight = self.world.queue.in_flight
        assert len(in_flight) == len(self.flights)
        assert all(uid in in_flight for uid in self.flights)
        assert self.flights or in_flight.held().total() == 0

    @invariant()
    def the_gauges_tell_the_truth(self) -> None:
        waiting = [row for row in self.table.rows.values() if self.waits(row)]
        places = Counter(row.place for row in waiting)
        assert {place: n for place, n in self.world.waiting().items() if n} == dict(places)
        rejectors = Counter(plugin for row in waiting for plugin in row.rejectors)
        assert self.world.refused() == dict(rejectors)

    @staticmethod
    def waits(row: Row) -> bool:
        return row.place != "flight"


TestQueueAgreesWithTheTable = QueueMachine.TestCase
TestQueueAgreesWithTheTable.settings = settings(
    max_examples=sized(50), stateful_step_count=60, deadline=None
)
