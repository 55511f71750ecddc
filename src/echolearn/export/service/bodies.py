"""Bodies of requests: read within a size and a time; what is left of a refused one is drained for a moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from echolearn.export.service.limits import Limits
from echolearn.export.service.refusals import Refusal

LINGER_SECONDS = 2.0
READ = "echolearn.body_read"  # the key in a scope that says whether the whole body has been read


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body; Refusal as soon as it is known to be too large, or when it takes too long."""
    most = limits.body_bytes
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > most:
        raise _too_large(f"{length[:20]} bytes", most)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise _too_large("more bytes", most)
                chunks.append(chunk)
    except TimeoutError:
        raise Refusal(
            408, "slow-body", f"the body did not arrive within {limits.body_seconds:g} s; send it at once."
        ) from None
    return b"".join(chunks)


def _too_large(what: str, most: int) -> Refusal:
    return Refusal(413, "body-size", f"the body has {what}; this service takes at most {most:,}.")


def noting(scope: Scope, receive: Receive) -> Receive:
    """Return `receive` that notes in the scope when the whole body has been read."""

    async def noted() -> Message:
        message = await receive()
        scope[READ] = not message.get("more_body", False)
        return message

    return noted


class RefusedResponse(Response):
    """A refusal. The rest of a body that is still on its way is drained for a moment, so that its sender reads it."""

    def __init__(self, refusal: Refusal, most: int) -> None:
        answer = refusal.response()
        super().__init__(answer.body, answer.status_code, dict(answer.headers))
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                size = 0
                while not scope.get(READ) and size <= 4 * self._most:
                    size += len((await receive()).get("body", b""))
        await send({"type": "http.response.body", "body": b""})
