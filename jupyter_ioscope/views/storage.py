"""A storage check in words: the verdict, what was measured, what the file system promises."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_ioscope.model.storage import FileSystem, NfsMount, StorageCheck, Timing
from jupyter_ioscope.units import bytes_text, percent, rate, seconds, significant
from jupyter_ioscope.views.sections import Section, block_text, html_of, text_of

_ANSWERED = {
    "device": "the storage",
    "page_cache": "the page cache",
    "memory": "memory",
    "unproven": "–",
}
_OPERATIONS = 8


def headline(check: StorageCheck) -> str:
    """Verdict, place, and the first reason."""
    why = f": {check.reasons[0]}" if check.reasons else ""
    name = check.file_system.name
    if check.verdict == "unknown":
        return f"{check.path} ({name}) was not judged{why}"
    return f"{check.path} ({name}) is {check.verdict}{why}"


def check_text(check: StorageCheck) -> str:
    """A check as lines of at most 100 columns."""
    return text_of(headline(check), _sections(check))


def check_html(check: StorageCheck) -> str:
    """A check as an HTML fragment without scripts."""
    return html_of(headline(check), _sections(check))


def _sections(check: StorageCheck) -> Iterator[Section]:
    if len(check.reasons) > 1:
        yield Section("More reasons", sentences=check.reasons[1:])
    rows = tuple(_timing(row) for row in check.timings)
    head = ("", "requests", "bandwidth", "median", "99 %", "worst", "answered by")
    yield Section("Measured, one request at a time", (head, *rows), tuple(_how(check)))
    judged = tuple(
        (row.what, row.value, row.verdict, f"{row.thresholds} ({row.source})")
        for row in check.judged
    )
    yield Section("Judged", (("", "value", "verdict", "thresholds and their source"), *judged))
    yield Section("For this loader", sentences=check.for_loader)
    if check.nfs_during is not None and check.nfs_during.operations:
        yield nfs_section(check.nfs_during, "NFS operations during the check, of all programs")
    yield from file_system_sections(check.file_system)
    yield Section("Notes", sentences=(*check.notes, *_took(check)))


def _timing(row: Timing) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.requests:,} × {block_text(row.request_bytes)}" if row.request_bytes
        else f"{row.requests:,}",
        f"{bytes_text(row.bytes_per_s)}/s" if row.bytes_per_s else "–",
        seconds(row.p50_s),
        seconds(row.p99_s),
        seconds(row.worst_s),
        _ANSWERED.get(row.answered_by, "–"),
    )  # fmt: skip


def _how(check: StorageCheck) -> Iterator[str]:
    told: dict[str, list[str]] = {}
    for row in check.timings:
        if row.how:
            told.setdefault(row.how, []).append(row.name)
    for how, names in told.items():
        yield f"{', '.join(names)}: {how}"


def _took(check: StorageCheck) -> Iterator[str]:
    if check.kind == "address":
        return
    mode = "quick" if check.quick else "thorough"
    free = f"; {bytes_text(check.free_bytes)} are free" if check.free_bytes >= 0 else ""
    yield f"The {mode} check took {seconds(check.seconds)}{free}."


def file_system_sections(found: FileSystem) -> Iterator[Section]:
    """What kind it is, what it promises, and the counters of NFS."""
    if found.family == "unknown":
        yield Section("File system", sentences=("which file system this is, is not known",))
        return
    rows = tuple((row.what, row.holds, row.why) for row in found.promises)
    where = f", mounted at {found.mount_point}" if found.mount_point else ""
    yield Section(f"{found.name}{where}: what it promises", (("", "holds", "why"), *rows))
    if found.capture_filter:
        yield Section("To capture its packets", code=f"tcpdump -i any '{found.capture_filter}'")
    if found.nfs is not None:
        yield nfs_section(
            found.nfs, f"NFS operations since the mount ({seconds(max(0, found.nfs.age_s))} ago)"
        )
    if found.ceph:
        yield _ceph_section(found)
    if found.no_counters:
        yield Section("Counters of the client", sentences=(found.no_counters,))


def _ceph_section(found: FileSystem) -> Section:
    def time_text(value_s: float) -> str:
        return seconds(value_s) if value_s >= 0 else "–"

    rows = tuple((row.name, f"{row.operations:,}", *map(time_text, row[2:])) for row in found.ceph)
    head = ("operation", "count", "mean", "worst", "standard deviation")
    return Section("CephFS requests since the mount", (head, *rows))


def nfs_section(mount: NfsMount, title: str) -> Section:
    """The busiest operations of an NFS mount."""
    busy = sorted(mount.operations, key=lambda row: -row.operations * row.total_s)[:_OPERATIONS]
    rows = tuple(
        (
            row.name,
            f"{row.operations:,}",
            seconds(row.queue_s),
            seconds(row.rtt_s),
            seconds(row.total_s),
            f"{row.repeats:,}",
            f"{row.timeouts:,}",
        )
        for row in busy
    )
    head = ("operation", "count", "queue", "round trip", "in all", "repeated", "timeouts")
    sentences = []
    if mount.read_bytes > 0 and mount.server_read_bytes >= 0:
        share = 1 - min(1.0, mount.server_read_bytes / mount.read_bytes)
        sentences.append(f"{percent(share)} of the bytes read came from this machine's cache")
    if mount.age_s > 0 and busy:
        total = sum(row.operations for row in mount.operations)
        sentences.append(
            f"{rate(total / mount.age_s, 'operations')} on average, "
            f"{significant(mount.connections)} connections"
        )
    return Section(title, (head, *rows), tuple(sentences))
