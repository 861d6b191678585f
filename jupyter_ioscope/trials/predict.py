"""What each toggle is expected to bring to the loop of a profile, before any trial."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from jupyter_ioscope.diagnosis.cycles import Without
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.headline import FEW_BATCHES
from jupyter_ioscope.diagnosis.what_if import WhatIf
from jupyter_ioscope.errors import IoscopeError, NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.prediction import Prediction, Setting
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.trials.predict_decoding import decoding_prediction
from jupyter_ioscope.trials.room import room_for
from jupyter_ioscope.trials.search import MARGIN, grid
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.units import percent

# Fixed part of the error of a start-up that is no longer paid, in parts of the gain.
_START_UP_ERROR = 0.2
# Causes whose gain is that of the fix: their rules take off what stays after it.
_OF_A_FIX = (
    "bytes_inflated",
    "hf_column_access",
    "hf_indices_mapping",
    "hf_python_object_rows",
    "hf_unused_decoded_column",
    "oversized_decode",
    "read_amplification",
    "repeated_deterministic_transform",
)
# Of a loop in which nearly everything could go, the rest is within the error: no bound is known.
_MOST_BOUND = 0.95
# Stack samples of fetching without one of a kind of work: it is less than 6 % of them (rule of
# three for 95 %).
_ENOUGH_SAMPLES = 50


class Predictor:
    """Predictions for one loader from one profile, and from what its diagnosis `findings` measured
    for toggles that they name. A toggle about which nothing is known has none."""

    def __init__(
        self, profile: Profile, spec: LoaderSpec, findings: Sequence[Finding] = ()
    ) -> None:
        self._facts, self._spec = Facts(profile), spec
        self._findings = tuple(findings)
        try:
            self._what_if: WhatIf | None = WhatIf(self._facts)
        except NotMeasuredError:
            self._what_if = None

    def all(self, toggles: Iterable[Toggle]) -> dict[str, Prediction]:
        """Toggle name -> prediction, for those that can be predicted."""
        made = {}
        for toggle in toggles:
            found = self.one(toggle)
            if found is not None:
                made[toggle.name] = found
        return made

    def one(self, toggle: Toggle) -> Prediction | None:
        if len(self._facts.profile.batches) < FEW_BATCHES:
            return None  # from so few anything between nothing and a hundredfold would follow
        try:
            if toggle.saves:
                return self._saving(toggle)
            if toggle.end_point == "epochs":
                return self._without_restarts()
            return self._other_setting(toggle)
        except NotMeasuredError:
            return None

    def idle(self, toggle: Toggle) -> str:
        """Why a toggle has nothing to save in this loop; "" where it may."""
        if not toggle.saves:
            return ""
        try:
            work = self._facts.work
            if work.samples < _ENOUGH_SAMPLES or work.fraction(*toggle.saves)[0] > 0:
                return ""
        except NotMeasuredError:
            return ""
        return "in this profile no fetch was seen doing what it makes cheaper"

    def together(self, toggles: Sequence[Toggle]) -> Prediction | None:
        """Of several toggles at once: only where the model knows all of them."""
        if len(toggles) == 1:
            return self.one(toggles[0])
        plain = [row for row in toggles if not row.saves and row.end_point == "steady"]
        if len(plain) != len(toggles) or not toggles:
            return None

        def apply(spec: LoaderSpec) -> LoaderSpec:
            for toggle in toggles:
                spec = toggle.apply(spec)
            return spec

        return self.one(replace(toggles[0], apply=apply))

    def best_workers(self) -> int | None:
        """The number of workers that the model would try, None where it knows nothing."""
        if self._what_if is None:
            return None
        # Advice for the machine, not for the moment: more workers would also take more from other
        # programs, which is nothing to recommend.
        what_if = WhatIf(self._facts, quiet=True)
        current = what_if.current
        room = room_for(self._facts.profile)
        rows = [
            row
            for row in grid(self._facts.cores, current, room.most_workers)
            if row.workers and row.prefetch == 2 and not room.refuses(row)
        ]
        rates = {row: what_if.ratio(row) for row in rows}
        top = max(rates.values(), default=0.0)
        # At a replay's end up to all workers but one have run out: that much a rate may be off.
        count = max(1, len(self._facts.profile.batches))
        near = [
            row
            for row, rate in rates.items()
            if rate * (1 + max(MARGIN, row.workers / count)) >= top
        ]
        return min((row.workers for row in near), default=None)

    def _other_setting(self, toggle: Toggle) -> Prediction | None:
        """Of toggles that change only what the model of the loader knows."""
        if self._what_if is None or toggle.learn is not None:
            return None
        try:
            spec = toggle.apply(self._spec)
        except IoscopeError:
            return None
        same = spec.changed(
            num_workers=self._spec.num_workers,
            prefetch_factor=self._spec.prefetch_factor,
            in_order=self._spec.in_order,
        )
        if same != self._spec or spec == self._spec:
            return None
        workers = self._what_if.with_work(spec.num_workers, spec.shards)
        return self._what_if.prediction(Setting(workers, spec.prefetch or 2, spec.in_order))

    def _saving(self, toggle: Toggle) -> Prediction | None:
        """Of toggles that make work cheaper: no more than that work takes, and no more than the
        finding that names the toggle measured. Where its rule reckons with what the fix leaves, its
        gain is what to expect; that a toggle brings less shows when it is tried. Decoders are timed
        on the user's own pictures."""
        with contextlib.suppress(NotMeasuredError):
            timed = decoding_prediction(self._facts, toggle.name)
            if timed is not None:
                return timed
        bound = self._at_most(toggle.saves)
        finding = next((row for row in self._findings if toggle.name in row.toggles), None)
        if finding is None or not 0 < finding.share <= finding.high < 1:
            return bound
        high = 1 / (1 - finding.high)
        if bound is not None and bound.high < high:
            return bound
        ratio = 1 / (1 - finding.share) if finding.cause in _OF_A_FIX else math.nan
        how = (
            f"{percent(finding.share)} of the loop's time would be free without its cause "
            f"({finding.title[:1].lower()}{finding.title[1:]})."
        )
        return Prediction(ratio, 1.0, high, how)

    def _at_most(self, kinds: tuple[str, ...]) -> Prediction | None:
        """Of toggles that make a kind of work cheaper: what its absence would bring bounds it."""
        fraction, error = self._facts.work.fraction(*kinds)
        if fraction <= 0:
            return None
        # Samples are parts of wall time: where the fetches also wait (for cores, too), a part of
        # their CPU alone would be too small a bound.
        part, doubt = min(1.0, fraction), min(1.0, error)
        gain = self._facts.gain(Without(part, off_cpu=part), Without(doubt, off_cpu=doubt))
        if not 0 < gain.high <= _MOST_BOUND:
            return None
        how = (
            f"{percent(fraction)} of the samples of fetching are in what this makes cheaper; "
            "removing all of it would bring the larger number."
        )
        return Prediction(math.nan, 1.0, 1 / (1 - gain.high), how)

    def _without_restarts(self) -> Prediction | None:
        """Of workers that stay: every epoch after the first begins without their start."""
        times = self._facts.start_ups_ns
        if not self._spec.num_workers or len(times) < 2:
            return None
        share = min(0.95, sum(times[1:]) / self._facts.loop.wall_ns)
        low, high = share * (1 - _START_UP_ERROR), min(0.97, share * (1 + _START_UP_ERROR))
        how = f"{percent(share)} of the loop's time went into starting workers again."
        return Prediction(1 / (1 - share), 1 / (1 - low), 1 / (1 - high), how)
