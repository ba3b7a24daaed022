"""Formats are those that kube-scheduler 1.36 sent when it was asked, reasons apart."""

import pytest

from mooring.ui.health import Health, HealthResult


class Checks:
    """Two checks whose reasons can be changed."""

    def __init__(self) -> None:
        self.handlers = ""
        self.health = Health()
        self.health.add("shutdown", lambda: "", on=["readyz"])
        self.health.add("sched-handler-sync", lambda: self.handlers, on=["readyz"])


def test_answers_with_two_letters_when_all_is_well() -> None:
    health = Checks().health
    assert health.check("healthz") == HealthResult(True, "ok")
    assert health.check("readyz") == HealthResult(True, "ok")


def test_lists_the_checks_of_an_endpoint_on_request() -> None:
    health = Checks().health
    assert health.check("healthz", verbose=True).text == "[+]ping ok\nhealthz check passed\n"
    assert health.check("readyz", verbose=True).text == (
        "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n"
    )


def test_says_what_failed_and_why_without_being_asked() -> None:
    checks = Checks()
    checks.handlers = "handlers are not fully synchronized"
    assert checks.health.check("readyz") == HealthResult(
        False,
        "[+]shutdown ok\n"
        "[-]sched-handler-sync failed: handlers are not fully synchronized\n"
        "readyz check failed\n",
    )
    assert checks.health.check("healthz").healthy
    checks.handlers = ""
    assert checks.health.check("readyz").healthy


def test_leaves_checks_out() -> None:
    checks = Checks()
    checks.handlers = "not yet"
    result = checks.health.check("readyz", verbose=True, exclude=["sched-handler-sync"])
    assert result == HealthResult(
        True, "[+]shutdown ok\n[+]sched-handler-sync excluded: ok\nreadyz check passed\n"
    )
    assert checks.health.check("readyz", exclude=["sched-handler-sync"]).text == "ok"


def test_warns_of_checks_that_cannot_be_left_out() -> None:
    result = Checks().health.check("readyz", verbose=True, exclude=["ping", "nonsense"])
    assert result.text == (
        "[+]shutdown ok\n"
        "[+]sched-handler-sync ok\n"
        'warn: some health checks cannot be excluded: no matches for "nonsense","ping"\n'
        "readyz check passed\n"
    )


def test_answers_for_one_check() -> None:
    checks = Checks()
    assert checks.health.single("readyz", "sched-handler-sync") == HealthResult(True, "ok")
    checks.handlers = "not yet"
    failed = checks.health.single("readyz", "sched-handler-sync")
    assert failed == HealthResult(False, "internal server error: not yet\n")
    assert checks.health.single("readyz", "ping") is None
    assert checks.health.single("healthz", "sched-handler-sync") is None
    assert checks.health.single("healthz", "ping") == HealthResult(True, "ok")


def test_can_be_pinged_where_there_is_nothing_to_check() -> None:
    health = Health()
    assert health.check("readyz", verbose=True).text == "[+]ping ok\nreadyz check passed\n"
    assert health.single("readyz", "ping") == HealthResult(True, "ok")


def test_takes_a_check_that_breaks_for_one_that_fails() -> None:
    def broken() -> str:
        raise LookupError("no such thing")

    health = Health()
    health.add("broken", broken, on=["healthz", "livez"])
    assert "[-]broken failed: LookupError: no such thing\n" in health.check("livez").text


def test_keeps_reasons_on_their_line() -> None:
    health = Health()
    health.add("sly", lambda: "bad\n[+]ping ok\nhealthz check passed", on=["healthz"])
    assert health.check("healthz").text.splitlines() == [
        "[+]ping ok",
        "[-]sly failed: bad [+]ping ok healthz check passed",
        "healthz check failed",
    ]


def test_refuses_a_second_check_of_the_same_name() -> None:
    health = Health()
    with pytest.raises(ValueError, match="healthz has a check called ping already"):
        health.add("ping", lambda: "", on=["healthz"])


def test_logs_changes_and_not_every_probe(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "mooring.ui.health")
    checks = Checks()
    for reason in ("", "a", "b", "", ""):
        checks.handlers = reason
        for _ in range(3):
            checks.health.check("readyz")
            checks.health.check("readyz", exclude=["sched-handler-sync"])
    assert [line.message for line in caplog.records] == [
        "health check failed",
        "health check passes again",
    ]
    assert vars(caplog.records[0])["checks"] == {"sched-handler-sync": "a"}


def test_shows_notes_in_full_results_and_fails_for_none() -> None:
    checks = Checks()
    note = ""
    checks.health.add_note("plugins", lambda: note, on=["readyz"])
    assert "plugins" not in checks.health.check("readyz", verbose=True).text
    note = "on probation: X"
    assert checks.health.check("readyz") == HealthResult(True, "ok")
    assert "[+]plugins ok: on probation: X\n" in checks.health.check("readyz", verbose=True).text
