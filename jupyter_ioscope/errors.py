"""Every exception ioscope raises on purpose."""

from __future__ import annotations


class IoscopeError(Exception):
    """Base of all errors raised by ioscope; catching it catches them all."""


class InputError(IoscopeError, ValueError):
    """An argument cannot be used. The text names the argument, its value and what to do."""


class MissingPackageError(IoscopeError, ImportError):
    """An optional package is needed. The text holds the install line."""


class ProfileFileError(IoscopeError):
    """A profile file is foreign, damaged, or of a format this version cannot read."""


class NotMeasuredError(IoscopeError):
    """A number was asked for that this profile does not hold.

    Attributes:
        what: the number that is missing.
        reason: why it could not be measured.
    """

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} was not measured: {reason}")
        self.what = what
        self.reason = reason


class CaptureError(IoscopeError):
    """Recording could not be started or read back."""


class TrialError(IoscopeError):
    """A trial of a comparison could not be run. The text says which arm and what to do."""
