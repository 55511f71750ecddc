"""Refusals: a status, a reason for programs and metrics, and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

# The reasons that metrics count; one word each, so that their number is bounded.
REASONS = (
    "malformed", "media-type", "body-size", "slow-body", "frames", "not-acceptable", "token", "host", "origin",
    "not-found", "method", "busy", "time", "streams", "stream-errors", "idle", "slow-reader", "connections", "headers",
    "slow-headers", "internal",
)  # fmt: skip


class Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        assert reason in REASONS
        self.status, self.reason, self.message, self.headers = status, reason, message, dict(headers or {})

    def response(self) -> JSONResponse:
        """Return the refusal as JSON; a refused connection is not used again."""
        headers = {"Connection": "close", "Cache-Control": "no-store", **self.headers}
        return JSONResponse(self.content(), self.status, headers)

    def content(self) -> dict[str, str]:
        """Return the reason and the sentence."""
        return {"error": self.message, "reason": self.reason}


def malformed(message: str) -> Refusal:
    """Return the refusal of a body that cannot be read."""
    return Refusal(400, "malformed", message)


def not_acceptable(message: str) -> Refusal:
    """Return the refusal of a body that can be read, but not by this model."""
    return Refusal(422, "not-acceptable", message)


def busy(message: str, reason: str = "busy") -> Refusal:
    """Return the refusal of a request for which there is no room now."""
    return Refusal(503, reason, message, {"Retry-After": "1"})
