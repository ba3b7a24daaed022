"""The record of a scheduler in its process, as its flags want it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mooring import __version__
from mooring.cli.run.options import RunOptions
from mooring.observe.metrics import Metrics
from mooring.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from mooring.lens.journal import DecisionJournal
    from mooring.lens.otlp_push import OtlpPush
    from mooring.lens.record import DecisionRecord
    from mooring.lens.record_file import RecordFile


class Recording(NamedTuple):
    """What is recorded; None for what is not."""

    record: DecisionRecord | None = None
    journal: DecisionJournal | None = None


@contextmanager
def recording(
    scheduler: Scheduler, options: RunOptions, metrics: Metrics, config: Callable[[], Any]
) -> Iterator[Recording]:
    """Inside, attempts are recorded, if there is a way to read them; `config` is in force."""
    kept = options.record_file or options.record_journal or options.record_otlp
    if not options.record_size or not (options.secure_port or kept):
        yield Recording()
        return
    from mooring.lens.record import DecisionRecord

    record = DecisionRecord(scheduler.now, size=options.record_size, margins=options.record_margins)
    metrics.before_scrape(lambda: metrics.records.labels().set(record.seq))
    file = _file(scheduler, options) if options.record_file else None
    push = _push(scheduler, options) if options.record_otlp else None
    journal = _journal(scheduler, options, config()) if options.record_journal else None
    losing = [one for one in (file, push) if one is not None]
    metrics.before_scrape(
        lambda: metrics.records_lost.labels().set(sum(one.lost for one in losing))
    )
    with ExitStack() as stack:
        for sink in (file, push, journal):
            if sink is not None:
                sink.start()
                stack.callback(sink.close)
                record.add_sink(sink)
        scheduler.ledger = record
        yield Recording(record, journal)


def _file(scheduler: Scheduler, options: RunOptions) -> RecordFile:
    from mooring.lens.record_file import RecordFile

    path, limit = Path(options.record_file), options.record_file_limit
    return RecordFile(path, now=scheduler.now(), version=__version__, limit=limit)


def _push(scheduler: Scheduler, options: RunOptions) -> OtlpPush:
    from mooring.lens.otlp_push import OtlpPush

    run = int(scheduler.now() * 1e6)
    return OtlpPush(options.record_otlp, share=options.record_otlp_share, run=run)


def _journal(scheduler: Scheduler, options: RunOptions, config: Any) -> DecisionJournal:
    from mooring.lens.journal import DecisionJournal

    return DecisionJournal(Path(options.record_journal), scheduler, config)
