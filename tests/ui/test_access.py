"""The matrix of who gets in, and what is remembered about it."""

import asyncio
import gc

import pytest
from tests.ui.in_process_server import FakeReviewer

from mooring.api.auth import UserInfo
from mooring.client.errors import Forbidden, Unreachable
from mooring.ui.access import Access, Denial, bearer_token, certified_user


class Gate:
    """An Access with a clock that is moved by hand."""

    def __init__(self, **options: object) -> None:
        self.time = 1000.0
        self.reviewer = FakeReviewer()
        self.access = Access(self.reviewer, now=lambda: self.time, **options)  # type: ignore[arg-type]

    def check(
        self, path: str = "/metrics", token: str = "", certified: UserInfo | None = None
    ) -> Denial | None:
        return asyncio.run(self.access.check("get", path, token=token, certified=certified))

    def code(
        self, path: str = "/metrics", token: str = "", certified: UserInfo | None = None
    ) -> int:
        denial = self.check(path, token, certified)
        return 200 if denial is None else denial.code


@pytest.mark.parametrize(
    ("path", "token", "code"),
    [
        ("/healthz", "", 200),
        ("/readyz/informer-sync", "", 200),
        ("/livez", "wrong", 200),
        ("/healthzz", "", 401),
        ("/metrics", "", 401),
        ("/metrics", "wrong", 401),
        ("/metrics", "guest", 403),
        ("/metrics", "scraper", 200),
        ("/configz", "scraper", 403),
        ("/configz", "admin", 200),
    ],
)
def test_lets_in_who_may_see_it(path: str, token: str, code: int) -> None:
    assert Gate().code(path, token) == code


def test_says_who_may_not_do_what() -> None:
    denial = Gate().check(token="guest")
    text = 'forbidden: User "guest" cannot get path "/metrics"'
    assert denial == Denial(403, "Forbidden", text)


def test_takes_the_word_of_a_certificate() -> None:
    gate = Gate()
    assert gate.code(certified=UserInfo(username="certified")) == 200
    assert gate.code(certified=UserInfo(username="stranger")) == 403
    assert (
        gate.code("/configz", certified=UserInfo(username="root", groups=("system:masters",)))
        == 200
    )
    assert ("access", "root", "get", "/configz") not in gate.reviewer.asked


def test_asks_no_one_about_masters_and_open_paths() -> None:
    gate = Gate()
    gate.code("/healthz", "scraper")
    gate.code("/configz", "admin")
    assert gate.reviewer.asked == [("token", "admin")]


def test_remembers_answers_for_ten_seconds() -> None:
    gate = Gate()
    for token in ("scraper", "guest", "wrong"):
        first = gate.code(token=token)
        asked = len(gate.reviewer.asked)
        gate.time += 9.9
        assert gate.code(token=token) == first
        assert len(gate.reviewer.asked) == asked
        gate.time += 0.2
        assert gate.code(token=token) == first
        assert len(gate.reviewer.asked) == 2 * asked
        gate.reviewer.asked.clear()


def test_notices_within_ten_seconds_that_a_right_was_taken_away() -> None:
    gate = Gate()
    assert gate.code(token="scraper") == 200
    gate.reviewer.may.clear()
    gate.time += 10
    assert gate.code(token="scraper") == 403
    del gate.reviewer.tokens["scraper"]
    gate.time += 10
    assert gate.code(token="scraper") == 401


async def test_forgets_the_oldest_of_too_many_answers() -> None:
    gate = Gate()

    for number in range(3_000):
        await gate.access.check("get", "/metrics", token=f"guess-{number}")
        await gate.access.check("get", f"/{number}", token="guest")
    assert len(gate.access._users) == 1_000
    assert len(gate.access._answers) == 1_000


def test_keeps_no_token() -> None:
    secret = "tok" + "en-" * 3 + "of-the-scraper"
    gate = Gate()
    gate.reviewer.tokens = {secret: UserInfo(username="scraper")}
    assert gate.code(token=secret) == 200
    kept: list[object] = [gate.access._users, gate.access._answers]
    seen: set[int] = set()
    while kept:
        thing = kept.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        assert not (isinstance(thing, str) and secret in thing)
        assert not (isinstance(thing, bytes) and secret.encode() in thing)
        kept += gc.get_referents(thing)


def test_refuses_a_request_that_the_api_server_could_not_review() -> None:
    gate = Gate()
    assert gate.code(token="scraper") == 200
    gate.time += 60
    gate.reviewer.outage = Unreachable("connection refused by 10.0.0.1", sent=False)
    denial = gate.check(token="scraper")
    assert denial is not None
    assert (denial.code, denial.reason) == (500, "InternalError")
    assert "the API server could not review this request" in denial.message
    assert "10.0.0.1" not in denial.message
    assert gate.code(certified=UserInfo(username="certified")) == 500
    assert gate.code("/healthz") == 200
    assert gate.code() == 401


def test_does_not_remember_an_outage() -> None:
    gate = Gate()
    gate.reviewer.outage = Forbidden("no rule", code=403)
    assert gate.code(token="scraper") == 500
    gate.reviewer.outage = None
    assert gate.code(token="scraper") == 200


def test_complains_once_about_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    gate.reviewer.outage = Forbidden("tokenreviews is forbidden", code=403)
    for _ in range(5):
        gate.code(token="scraper")
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert "tokenreviews is forbidden" in vars(line)["error"]


def test_opens_the_paths_it_is_told_to() -> None:
    gate = Gate(open_paths=["/healthz", "/public/*"])
    assert gate.code("/healthz") == 200
    assert gate.code("/healthz/ping") == 401
    assert gate.code("/public/a/b") == 200
    assert gate.code("/public") == 401


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("", ""),
        ("abc", ""),
    ],
)
def test_reads_bearer_tokens(header: str, token: str) -> None:
    assert bearer_token(header) == token


def test_reads_names_and_groups_from_a_certificate() -> None:
    subject = (
        (("organizationName", "system:masters"),),
        (("organizationName", "dev"), ("commonName", "jane")),
    )
    user = certified_user({"subject": subject})
    assert user == UserInfo(
        username="jane", groups=("system:masters", "dev", "system:authenticated")
    )
    assert certified_user({"subject": ((("organizationName", "system:masters"),),)}) is None
    assert certified_user({}) is None
    assert certified_user(None) is None
