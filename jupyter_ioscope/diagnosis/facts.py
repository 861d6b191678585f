"""Everything rules ask for: the numbers of the loop, and what removing a cost would gain."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from jupyter_ioscope.diagnosis.cycles import Effect, Replay, Without
from jupyter_ioscope.diagnosis.loop_facts import LoopFacts
from jupyter_ioscope.diagnosis.recorded import replay_of
from jupyter_ioscope.diagnosis.spread import Z95, together
from jupyter_ioscope.diagnosis.storage_facts import StorageFacts
from jupyter_ioscope.diagnosis.work import Mix, blocked_mix_of, mix_of
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import BLOCKED

_ON_CPU = ("cpu", "idle", "start_up", "rest", "hand_over")
_OFF_CPU = ("run_queue", *BLOCKED)

# Shares below this part of the loop are noise: two runs of one loader differ by more.
NOISE_SHARE = 0.05


class Gain(NamedTuple):
    """Part of the loop's wall time that removing a cause frees, with a 95 % interval."""

    share: float
    low: float
    high: float

    def times(self, part: float) -> Gain:
        """The same for a part of the cause."""
        return Gain(self.share * part, self.low * part, self.high * part)

    @staticmethod
    def of(share: float, error: float) -> Gain:
        half = Z95 * error
        return Gain(share, max(0.0, share - half), min(1.0, share + half))


class Facts(LoopFacts):
    """Numbers of one profile and what the loop would gain without one of its costs.

    Raises `NotMeasuredError`, with the reason, when asked for a number that the profile lacks.
    """

    @cached_property
    def storage(self) -> StorageFacts:
        """Numbers about files, reads, memory and the garbage collector."""
        return StorageFacts(self)

    @cached_property
    def work(self) -> Mix:
        """What fetching threads were seen doing, by kind of work."""
        profile = self.profile
        if profile.stacks is None:
            early = profile.tier == "in_process"
            reason = self._no_sampler() if early else "stacks were not sampled"
            raise NotMeasuredError("what fetches do", reason)
        role = "consumer" if self.alone else "worker"
        mix = mix_of(profile.stacks, role, profile.calls, self.loader.library)
        if not mix.samples:
            raise NotMeasuredError("what fetches do", "no stack sample fell into a fetch")
        return mix

    @cached_property
    def blocked_work(self) -> Mix | None:
        """`work` at instants at which the threads were blocked; None where that was not sampled."""
        profile = self.profile
        if profile.blocked is None:
            return None
        role = "consumer" if self.alone else "worker"
        mix = blocked_mix_of(profile.blocked, role, profile.calls, self.loader.library)
        return mix if mix.samples else None

    @cached_property
    def replay(self) -> Replay:
        """The main loader's batches as the loop model sees them."""
        count = max(1, len([row for row in self.profile.fetches if row.worker >= 0]))
        put_ns = 0.0 if self.alone else self.part_ns("hand_over") / count
        feeders = (row.run_ns for row in self.profile.threads if row.role == "feeder")
        feeder_ns = sum(feeders) / count
        replay = replay_of(self.loader, self.batches, self.made, put_ns, feeder_ns, self.inside_ns)
        if replay is None:
            raise NotMeasuredError("what a fetch costs", "no fetch was recorded")
        return replay

    @cached_property
    def reach(self) -> float:
        """Part of the loop's wall time that the main loader's batches cover."""
        return min(1.0, self.replay.recorded_ns / self.loop.wall_ns)

    def gain(self, without: Without, mix_error: Without | None = None) -> Gain:
        """What the loop would gain without a cost: the replay with it against the replay without.

        The error joins the spread over stretches of the loop, the sampling error of `without`
        (`mix_error`, one standard error each), and how badly the model repeats what was recorded.
        """
        effect = self._effect(without)
        sampled = 0.0
        if mix_error is not None:
            more = Without(*(min(1.0, a + b) for a, b in zip(without, mix_error, strict=True)))
            less = Without(*(max(0.0, a - b) for a, b in zip(without, mix_error, strict=True)))
            sampled = (self._effect(more).freed - self._effect(less).freed) / 2
        misfit = min(0.5, abs(self.replay.misfit)) * effect.freed if self._has_replay else 0.0
        reach = self.reach if self._has_replay else 1.0
        error = together(effect.error, sampled, misfit / Z95)
        return Gain.of(effect.freed * reach, error * reach)

    @cached_property
    def _has_replay(self) -> bool:
        try:
            return self.replay is not None
        except NotMeasuredError:
            return False

    def _effect(self, without: Without) -> Effect:
        without = self._with_its_line(without)
        return self.replay.effect(without) if self._has_replay else self._by_utilisation(without)

    def _with_its_line(self, without: Without) -> Without:
        """Who needs less of a core stands in line behind other programs for less: cores are shared
        out in slices, so that time is in proportion to the CPU that is needed. A line that the
        loop's own threads make is a cause of its own."""
        if without.cpu <= 0:
            return without
        off_cpu = min(1.0, without.off_cpu + without.cpu * self._queue_mix)
        return without._replace(off_cpu=off_cpu)

    @cached_property
    def _queue_mix(self) -> float:
        """Of the fetches' time off the CPU, the part in line behind other programs; 0 where
        unknown."""
        try:
            return self._line_fraction * (1 - self.own_part_of_line)
        except NotMeasuredError:
            return 0.0

    @cached_property
    def own_cpu(self) -> float:
        """Part of what CPU work in fetches takes, with its time in line behind other programs,
        that it would take alone; 1 where that is not known."""
        try:
            line_ns = self.part_ns("run_queue") * (1 - self.own_part_of_line)
            cpu_ns = self.part_ns("cpu")
        except NotMeasuredError:
            return 1.0
        return cpu_ns / (cpu_ns + line_ns) if cpu_ns > 0 else 1.0

    @cached_property
    def _line_fraction(self) -> float:
        """Of the fetches' time off the CPU, the part in line for a core. Raises NotMeasuredError
        where states were not sampled."""
        self.need_states()
        off_ns = self._off_ns()
        return min(1.0, self.part_ns("run_queue") / off_ns) if off_ns > 0 else 0.0

    def _by_utilisation(self, without: Without) -> Effect:
        """Without records of fetches: the loop goes as fast as its busier side allows."""
        main = self.waits.consumer
        rows = [row for row in self.waits.workers if row.wall_ns]
        if main is None or not rows:
            raise NotMeasuredError("what a fetch costs", "no fetch was recorded")
        off_ns = sum(sum(p.time_ns for p in row.parts if p.name not in _ON_CPU) for row in rows)
        wall = sum(row.wall_ns for row in rows)
        cpu, off = sum(row.part_ns("cpu") for row in rows) / wall, off_ns / wall
        step, hand = main.fraction("step"), main.fraction("hand_over")
        before = max(cpu + off, step + hand)
        main_after = step * (1 - without.step) + hand * (1 - without.hand_over)
        after = max(cpu * (1 - without.cpu) + off * (1 - without.off_cpu), main_after)
        error = self.waits.wait_fraction_error
        return Effect(max(0.0, 1 - after / before) if before > 0 else 0.0, error)

    def gain_blocked(self, *parts: str) -> Gain:
        """Gain of removing kinds of time off the CPU inside fetches.

        Raises NotMeasuredError where states were not sampled and the time off the CPU matters.
        """
        most = self.gain(Without(off_cpu=1.0))
        if most.high < NOISE_SHARE:
            return Gain(0.0, 0.0, most.high)
        self.need_states()
        off_ns = self._off_ns()
        if off_ns <= 0:
            return Gain(0.0, 0.0, most.high)
        rows = [p for row in self.fetching for p in row.parts if p.name in parts]
        mix = sum(p.time_ns for p in rows) / off_ns
        error = together(*(float(p.error_ns) for p in rows)) / off_ns
        return self.gain(Without(off_cpu=mix), Without(off_cpu=error))

    def gain_queue(self) -> Gain:
        """Gain of never waiting for a core, whoever was on it. Counted in: hand-over off the CPU,
        which is what is left of it when the threads that bring a batch across cannot run."""
        mix = self._line_fraction
        main = self.waits.consumer
        hand_ns = main.part_ns("hand_over") if main and not self.alone else 0
        cpu_ns = min(hand_ns, sum(row.wait_cpu_ns for row in self.profile.batches))
        hand = 1 - cpu_ns / hand_ns if hand_ns else 0.0
        return self.gain(Without(off_cpu=mix, hand_over=hand))

    def _off_ns(self) -> int:
        rows = self.fetching
        return sum(sum(p.time_ns for p in row.parts if p.name in _OFF_CPU) for row in rows)

    def gain_cpu(self, fraction: float = 1.0) -> Gain:
        """Gain of removing a fraction of the CPU used in fetches, and of its time in line."""
        return self.gain(Without(cpu=fraction))

    def gain_step(self) -> Gain:
        return self.gain(Without(step=1.0))

    def gain_hand_over(self) -> Gain:
        if self.alone:
            raise NotMeasuredError("hand-over", "there are no workers: nothing is handed over")
        return self.gain(Without(hand_over=1.0))
