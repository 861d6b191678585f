"""Numbers about the loop, the machine and the threads: computed once, or missing with reason."""

from __future__ import annotations

from functools import cached_property
from statistics import fmean, median

from jupyter_ioscope.diagnosis.consumer_waits import fetched_by_consumer
from jupyter_ioscope.diagnosis.hot import Hot, hottest
from jupyter_ioscope.diagnosis.loop import Loop, loop_of
from jupyter_ioscope.diagnosis.loops_inside import loops_inside, own_times_ns
from jupyter_ioscope.diagnosis.phases import made_by
from jupyter_ioscope.diagnosis.same_loader import numbers_of_loaders
from jupyter_ioscope.diagnosis.waits import waits_of
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import ThreadWaits, Waits
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.records import Batch, Fetch, LoaderInfo

# The kernel counts a machine's CPU time in ticks of 10 ms: 20 of them tell about one part in ten.
LEAST_CPU_NS = 200_000_000
# Two beats of the sampler. A shorter loop costs nobody anything, and its parts are chance.
LEAST_LOOP_NS = 50_000_000


class LoopFacts:
    """Named numbers of one profile.

    Raises `NotMeasuredError`, with the reason, when asked for a number that the profile lacks.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    # -- the loop ---------------------------------------------------------------------------------

    @cached_property
    def waits(self) -> Waits:
        return waits_of(self.profile)

    @cached_property
    def loop(self) -> Loop:
        loop = loop_of(self.profile)
        if loop is None or loop.wall_ns <= 0:
            raise NotMeasuredError("the loop", "no loader was iterated")
        return loop

    @property
    def loop_s(self) -> float:
        return self.loop.wall_ns / 1e9

    @property
    def too_short(self) -> bool:
        """Whether the loop was over before anything could be seen of it."""
        loop = loop_of(self.profile)
        return loop is not None and 0 < loop.wall_ns < LEAST_LOOP_NS

    @property
    def before_ns(self) -> int:
        """From the start of the profile to the first `iter()`."""
        return max(0, self.loop.start_ns - self.profile.start_ns)

    @cached_property
    def loader(self) -> LoaderInfo:
        """The loader that took most of the consumer's time; a loop inside a step of another one is
        its own loader's. Loaders made anew with equal settings count as one, and the first stands
        for all."""
        spent: dict[int, int] = {}
        for own, time_ns in own_times_ns(self.profile).items():
            number = self._numbers.get(own, own)
            spent[number] = spent.get(number, 0) + time_ns
        for info in self.profile.loaders:
            if info.loader == max(spent, key=lambda key: spent[key], default=info.loader):
                return info
        raise NotMeasuredError("the loader", "no loader was iterated")

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return numbers_of_loaders(self.profile)

    def is_main(self, number: int) -> bool:
        """Whether a loader's number is that of the main loader, or of one like it."""
        return self._numbers.get(number, number) == self.loader.loader

    def first_alike(self, number: int) -> bool:
        """Whether a loader is the first of those with its settings, which stands for all."""
        return self._numbers.get(number, number) == number

    @property
    def workers(self) -> int:
        return self.loader.num_workers

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """Batches of the main loader."""
        return tuple(row for row in self.profile.batches if self.is_main(row.loader))

    @cached_property
    def made(self) -> dict[int, Fetch]:
        """Batch number -> its fetch."""
        return made_by(self.profile.batches, self.profile.fetches)

    @cached_property
    def fetches(self) -> tuple[Fetch, ...]:
        """Fetches of the main loader."""
        rows = tuple(row for row in self.profile.fetches if self.is_main(row.loader))
        if not rows:
            reason = "the workers were already running when the profile began"
            if not self.loader.workers_before_profile:
                reason = "no fetch was recorded"
            raise NotMeasuredError("what a fetch costs", reason)
        return rows

    @cached_property
    def samples_per_batch(self) -> float:
        known = [row.samples for row in self.batches if row.samples >= 0]
        if known:
            return fmean(known) or 1.0
        return float(self.loader.batch_size or 1)

    @cached_property
    def cut_batches(self) -> frozenset[int]:
        """Numbers of the last batches of epochs, where they are shorter than all others of it."""
        least: dict[int, int] = {}
        last: dict[int, Batch] = {}
        for row in self.batches:
            before = last.get(row.epoch)
            if before is not None:
                least[row.epoch] = min(before.samples, least.get(row.epoch, before.samples))
            last[row.epoch] = row
        return frozenset(
            row.batch for epoch, row in last.items() if 0 < row.samples < least.get(epoch, 0)
        )

    @cached_property
    def full_batch(self) -> float:
        """Samples of a batch, on average, without the short one at the end of an epoch: it is no
        batch to speak of a rate by."""
        rows = [row for row in self.batches if row.batch not in self.cut_batches]
        known = [row.samples for row in rows if row.samples > 0]
        return fmean(known) if known else self.samples_per_batch

    @cached_property
    def inside_ns(self) -> dict[int, int]:
        """Number of a batch -> time of loops over other loaders inside its step."""
        found: dict[int, int] = {}
        for row in loops_inside(self.profile):
            found[row.batch] = found.get(row.batch, 0) + row.time_ns
        return found

    @property
    def step_s(self) -> float:
        """Mean length of a step, in seconds, without loops over other loaders inside it."""
        rows = self.batches
        inside_ns = sum(self.inside_ns.get(row.batch, 0) for row in rows)
        return max(0, sum(row.step_ns for row in rows) - inside_ns) / max(1, len(rows)) / 1e9

    # -- the machine ------------------------------------------------------------------------------

    @cached_property
    def cores(self) -> float:
        """Cores that may be used: affinity and quota honoured."""
        usable = float(max(1, self.profile.machine.cpus_usable))
        quota = self.profile.machine.cpu_quota
        return min(usable, quota) if quota else usable

    @cached_property
    def taken_cores(self) -> float:
        """Of `cores`, how many other programs kept busy, on average. Cores that only they may use
        take nothing away, nor does work beside a quota that leaves enough cores free."""
        others = self._cores_used("machine_busy_ns") - self._cores_used("tree_cpu_ns")
        cost, machine = self.profile.cost, self.profile.machine
        others -= (cost.sampler_cpu_s + cost.stacks_cpu_s) / max(1e-9, self.profile.wall_s)
        elsewhere = max(0, machine.cpus - machine.cpus_usable)
        left = machine.cpus_usable - max(0.0, others - elsewhere)
        return min(self.cores, max(0.0, self.cores - left))

    @cached_property
    def own_part_of_line(self) -> float:
        """Of the time in which threads stood in line for a core, the part spent behind threads of
        this loop. Who stands in line stands behind whoever runs, so it is divided as running is.
        1 where other programs were not measured; without the sampler it is theirs if this loop has
        a core for each of its threads.
        """
        try:
            own, others = self._cores_used("tree_cpu_ns"), self.taken_cores
        except NotMeasuredError:
            threads = 1 if self.alone else 1 + self.workers
            sampled = any(row.exact for row in self.profile.threads)
            return 1.0 if sampled or threads > self.cores else 0.0
        return own / (own + others) if others > 0 else 1.0

    @property
    def tree_cores(self) -> float:
        """Cores that this process and all below it kept busy, on average; ended ones too."""
        return self._cores_used("tree_cpu_ns")

    def _cores_used(self, name: str) -> float:
        """Mean growth of a series of CPU time."""
        series = self.profile.series.get(name)
        length_ns = series.time_ns[-1] - series.time_ns[0] if series and series.time_ns else 0
        if series is None or length_ns < LEAST_CPU_NS:
            reason = "the profile is too short" if series else self._no_sampler()
            raise NotMeasuredError("how busy the cores were", reason)
        return series.total() / length_ns

    @cached_property
    def runnable(self) -> float:
        """Mean number of threads of the tree that ran or wanted to run."""
        if not self.profile.threads:
            raise NotMeasuredError("how many threads wanted a core", self._no_sampler())
        busy = sum(row.run_ns + row.run_queue_ns for row in self.profile.threads)
        return busy / self.loop.wall_ns

    @cached_property
    def tree_cpu_ns(self) -> int:
        """CPU of the loop and all its workers: records where there are any, else thread times."""
        served = sum(row.cpu_ns for row in self.profile.fetches if row.worker >= 0)
        main = sum(row.wait_cpu_ns + row.step_cpu_ns for row in self.profile.batches)
        others = sum(
            row.run_ns for row in self.profile.threads if row.role not in ("consumer", "worker")
        )
        handed = sum(row.part_ns("hand_over") for row in self.waits.workers)
        if not served:
            served = sum(row.run_ns for row in self.profile.threads if row.role == "worker")
            handed = 0
        return served + main + others + handed

    # -- the threads that fetch -------------------------------------------------------------------

    @cached_property
    def alone(self) -> bool:
        """Whether the consumer fetches for itself."""
        return bool(self.batches) and fetched_by_consumer(self.profile, self.made, self.batches[-1])

    @property
    def fetching(self) -> tuple[ThreadWaits, ...]:
        """Rows of the threads that fetch."""
        if self.alone:
            return (self.waits.consumer,) if self.waits.consumer else ()
        return self.waits.workers

    @cached_property
    def workers_without_work(self) -> int:
        """Workers of the main loader that made no batch, though there were several for each."""
        rows = [row for row in self.profile.fetches if row.worker >= 0 and row.samples]
        busy = {row.worker for row in rows if self.is_main(row.loader)}
        enough = len(self.batches) >= 3 * self.workers
        return self.workers - len(busy) if busy and enough else 0

    def part_ns(self, part: str) -> int:
        """Time of a part over all fetching threads."""
        return sum(row.part_ns(part) for row in self.fetching)

    def busy_fraction(self, part: str) -> float:
        """A part as a fraction of the time in which the fetching threads were not idle."""
        quiet = ("idle", "step", "start_up")
        busy = sum(row.wall_ns - sum(map(row.part_ns, quiet)) for row in self.fetching)
        return min(1.0, self.part_ns(part) / busy) if busy > 0 else 0.0

    def need_states(self) -> None:
        """Raises NotMeasuredError unless the states of the fetching threads were sampled."""
        role = "consumer" if self.alone else "worker"
        rows = [row for row in self.profile.threads if row.role == role]
        if not any(row.sample_ns or row.run_queue_ns for row in rows):
            raise NotMeasuredError("what blocked threads waited for", self._no_sampler())

    def _no_sampler(self) -> str:
        if self.profile.tier == "in_process":
            gaps = [gap.reason for gap in self.profile.not_measured if "state" in gap.what]
            return gaps[0] if gaps else "only records made inside the processes are there"
        return "the sampler saw no such thread"

    # -- details ----------------------------------------------------------------------------------

    @cached_property
    def hot(self) -> Hot:
        """The user's function in which the fetching threads were seen most."""
        stacks = self.profile.stacks
        if stacks is None:
            raise NotMeasuredError("where in the code", "stacks were not sampled")
        found = hottest(stacks, "consumer" if self.alone else "worker")
        if found is None:
            raise NotMeasuredError("where in the code", "no stack sample fell into a fetch")
        return found

    def where(self) -> str:
        """`hot` as text; empty where it is not known."""
        try:
            return self.hot.where
        except NotMeasuredError:
            return ""

    @cached_property
    def start_ups_ns(self) -> list[int]:
        """`start_ups_of` the main loader."""
        return self.start_ups_of(self.loader.loader)

    def start_ups_of(self, number: int) -> list[int]:
        """Per epoch of a loader, and of those like it: from `iter()` to the first fetch (or the
        first batch where fetches are unknown), what first fetches took longer than later ones (a
        worker that opens its files then), and the end of the epoch, when workers are stopped."""
        found = []
        alike = {row.loader for row in self.profile.loaders
                 if self._numbers.get(row.loader, row.loader) == number}  # fmt: skip
        firsts = self._first_fetches(alike)
        for epoch in self.profile.epochs:
            rows = self._of_epoch.get(epoch.epoch, [])
            if epoch.loader not in alike or not rows:
                continue
            first = rows[0]
            fetch = self.made.get(first.batch)
            until = min(fetch.start_ns, first.wait_end_ns) if fetch else epoch.iter_end_ns
            stop = epoch.end_ns - rows[-1].step_end_ns if epoch.end_ns is not None else 0
            opening = firsts.get(epoch.epoch, 0)
            found.append(max(0, until - epoch.iter_start_ns) + opening + max(0, stop))
        return found

    @cached_property
    def _of_epoch(self) -> dict[int, list[Batch]]:
        """Number of an epoch -> its batches."""
        found: dict[int, list[Batch]] = {}
        for row in self.profile.batches:
            found.setdefault(row.epoch, []).append(row)
        return found

    @cached_property
    def _served_by_loader(self) -> dict[int, list[Fetch]]:
        """Number of a loader -> fetches of its workers."""
        found: dict[int, list[Fetch]] = {}
        for row in self.profile.fetches:
            if row.worker >= 0:
                found.setdefault(row.loader, []).append(row)
        return found

    def _first_fetches(self, loaders: set[int]) -> dict[int, int]:
        """Per epoch: how much longer the first fetches of new workers took than usual ones. The
        workers do it at the same time, so the shortest of them stands for the epoch."""
        seen: set[int] = set()
        first: dict[int, list[int]] = {}
        later: list[int] = []
        rows = [row for loader in loaders for row in self._served_by_loader.get(loader, ())]
        for row in sorted(rows, key=lambda fetch: fetch.start_ns):
            if row.pid in seen:
                later.append(row.fetch_ns)
            else:
                first.setdefault(row.epoch, []).append(row.fetch_ns)
            seen.add(row.pid)
        if not later:
            return {}
        usual = median(later)
        return {epoch: max(0, int(min(times) - usual)) for epoch, times in first.items()}
