"""Every error a user can meet: each knows its wire code, its exit code, and what to do about it."""

from __future__ import annotations


class ForetypeError(Exception):
    """Base. `message` says what is wrong and where; `remedy` what to do. Never carries source text."""

    code = "internal"
    status = 500
    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message.removesuffix('.')}. {self.remedy}" if self.remedy else self.message


class BadRequest(ForetypeError):
    """The request cannot be understood; names the field."""

    code = "invalid_request"
    status = 400
    exit_code = 2


class TooLarge(BadRequest):
    """A body or a field beyond its limit."""

    code = "too_large"
    status = 413


class Resync(ForetypeError):
    """The daemon does not hold the version of a document that is spoken of: tell it the whole text."""

    code = "resync"
    status = 409


class NotKept(Resync):
    """No copy of this document is kept: send its text with each request."""

    code = "not_kept"


class Refused(ForetypeError):
    """Not from this user, this machine or this kind of client."""

    code = "refused"
    status = 403


class WrongType(Refused):
    """A content type other than JSON."""

    code = "unsupported_media_type"
    status = 415


class Unauthorized(Refused):
    """A token is configured and was not given."""

    code = "unauthorized"
    status = 401


class NotSupported(ForetypeError):
    """The model or this build cannot do it."""

    code = "not_supported"
    status = 501


class Loading(ForetypeError):
    """The engine is not ready yet."""

    code = "unavailable"
    status = 503


class Overloaded(ForetypeError):
    """Queues are full; try again after `retry_after` seconds."""

    code = "overloaded"
    status = 429

    def __init__(self, message: str, remedy: str = "", retry_after: int = 1) -> None:
        super().__init__(message, remedy)
        self.retry_after = retry_after


class SettingsError(ForetypeError):
    """A settings file that cannot be used; names the file and the key."""

    code = "settings"
    exit_code = 2


class ModelError(ForetypeError):
    """A model that is missing, damaged, foreign or not in the catalogue."""

    code = "model"
    exit_code = 3


class PullError(ModelError):
    """A download that could not be finished; what is there stays for the next try."""

    code = "pull"
    exit_code = 4


class EngineFailed(ForetypeError):
    """The engine process ended or refused to start; says why."""

    code = "engine"
    status = 503
    exit_code = 5


class LifecycleError(ForetypeError):
    """Starting or stopping the daemon failed; says what holds it."""

    code = "lifecycle"
    exit_code = 6


class NotRunning(LifecycleError):
    """No daemon answers."""

    code = "not_running"
    exit_code = 7


class Vanished(ForetypeError):
    """The client went away."""

    code = "cancelled"
    status = 499
