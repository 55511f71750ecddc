"""The ASGI application: routes, and the door that every request passes."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from echolearn import __version__
from echolearn.export.service.access import Access
from echolearn.export.service.bodies import RefusedResponse, answer, noting, parse_body, read_body
from echolearn.export.service.limits import METRICS_TYPE, ROUTES, Limits, Metrics, Refusal
from echolearn.export.service.models import Json, NetworkModel, ServedModel, SpeechModel
from echolearn.export.service.streams import StreamRoute
from echolearn.export.service.threads import Workshop

LOGGER = logging.getLogger("echolearn.service")
_SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class Service:
    """A model, its limits, and the state that all requests share: metrics, threads, and whether it is stopping. page:
    at `/`, with its own content policy, as those of `echolearn page` have; until there is one, what /model says."""

    def __init__(self, model: ServedModel, limits: Limits, access: Access) -> None:
        self.model, self.limits, self.access = model, limits, access
        self.metrics = Metrics()
        self.workshop = Workshop(self.limits, self.metrics)
        self.stopping = False
        self.page: str | None = None

    def application(self) -> ASGIApp:
        routes = [
            Route("/", self._front, methods=["GET"]),
            Route("/model", self._about, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/ready", self._ready, methods=["GET"]),
            Route("/metrics", self._show_metrics, methods=["GET"]),
            Route("/predict", self._predict, methods=["POST"]),
            Route("/recognize", self._recognize, methods=["POST"]),
        ]
        handlers = {Refusal: self._refused, HTTPException: self._not_here, Exception: self._failed}
        inner = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        inner.router.redirect_slashes = False
        return Door(inner, StreamRoute(self.model, self.limits, self.metrics, self.workshop), self)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self.stopping = True
        self.workshop.close()

    async def _front(self, request: Request) -> Response:
        if self.page is None:
            return await self._about(request)
        return Response(self.page, media_type="text/html; charset=utf-8", headers=_SECURITY_HEADERS)

    async def _about(self, request: Request) -> Response:
        about, limits = self.model.about, self.limits
        content = {
            "estimator": about.estimator,
            "task": about.task,
            "n_features": about.n_features,
            "feature_names": list(about.feature_names),
            "classes": list(about.classes),
            "per_step": about.per_step,
            "hidden_units": about.units,
            "streams": self.model.open_stream is not None,
            "why_no_stream": self.model.why_no_stream,
            "limits": {"body_bytes": limits.body_bytes, "frames": limits.frames, "message_bytes": limits.message_bytes},
            "echolearn": __version__,
        }
        return JSONResponse(content, headers=_SECURITY_HEADERS)

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "alive"}, headers=_SECURITY_HEADERS)

    async def _ready(self, request: Request) -> Response:
        state, status = ("stopping", 503) if self.stopping else ("ready", 200)
        return JSONResponse({"status": state}, status, headers=_SECURITY_HEADERS)

    async def _show_metrics(self, request: Request) -> Response:
        return Response(self.metrics.text(), headers={**_SECURITY_HEADERS, "Content-Type": METRICS_TYPE})

    async def _predict(self, request: Request) -> Response:
        model = self.model
        if not isinstance(model, NetworkModel):
            raise Refusal(404, "not-found", "this model recognises speech; POST a recording to /recognize.")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        most = self.limits.frames
        return await self._answer(request, lambda body: answer(model, parse_body(kind, body, model.about, most)))

    async def _recognize(self, request: Request) -> Response:
        model = self.model
        if not isinstance(model, SpeechModel):
            raise Refusal(404, "not-found", "this model is no recogniser of speech; POST frames to /predict.")
        seconds = self.limits.frames / 100
        return await self._answer(request, lambda body: model.recognize(body, seconds))

    async def _answer(self, request: Request, work: Callable[[bytes], Json]) -> Response:
        """Return the work of a thread on the body; its JSON is written there too."""
        read = read_body(request, self.limits)
        content = await self.workshop.request(read, lambda body: json.dumps(work(body), allow_nan=False).encode())
        return Response(content, media_type="application/json", headers=_SECURITY_HEADERS)

    async def _refused(self, request: Request, problem: Exception) -> Response:
        assert isinstance(problem, Refusal)
        self.metrics.refuse(problem.reason)
        return RefusedResponse(problem, self.limits.body_bytes)

    async def _not_here(self, request: Request, problem: Exception) -> Response:
        """Answer to what Starlette itself refuses: another path, another method."""
        assert isinstance(problem, HTTPException)
        allowed = (problem.headers or {}).get("Allow")
        if problem.status_code == 405:
            sentence = f"{request.method!r:.20} is not for {request.url.path!r:.60}; use {allowed}."
            return await self._refused(request, Refusal(405, "method", sentence, {"Allow": allowed or ""}))
        sentence = f"there is no {request.url.path!r:.60} here; expected one of {', '.join(ROUTES)}."
        return await self._refused(request, Refusal(404, "not-found", sentence))

    async def _failed(self, request: Request, problem: Exception) -> Response:
        """Answer when the service itself has failed; the traceback goes to the log, not to the client."""
        return await self._refused(request, Refusal(500, "internal", "the service failed; its log says how."))


class Door:
    """Checks the access of every request, and counts it."""

    def __init__(self, inner: ASGIApp, streams: ASGIApp, service: Service) -> None:
        self._inner, self._streams, self._service = inner, streams, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        else:
            await self._inner(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin, status = time.perf_counter(), 499  # what is counted when the client leaves before its answer

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        service, received = self._service, noting(scope, receive)
        try:
            service.access.check(scope["path"], Headers(scope=scope))
            await self._inner(scope, received, counted)
        except Refusal as refusal:
            service.metrics.refuse(refusal.reason)
            await RefusedResponse(refusal, service.limits.body_bytes)(scope, received, counted)
        except ClientDisconnect:
            pass
        except Exception:  # the client has its answer, without the traceback
            LOGGER.exception("a request failed")
        finally:
            service.metrics.request(scope["path"], status, time.perf_counter() - begin)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        service, begin, status = self._service, time.perf_counter(), 101
        try:
            service.access.check(scope["path"], Headers(scope=scope), scope.get("subprotocols", ()))
            if scope["path"] != "/stream":
                raise Refusal(404, "not-found", "there is no such stream here; connect to /stream.")
        except Refusal as refusal:
            service.metrics.refuse(refusal.reason)
            status = refusal.status
            await WebSocket(scope, receive, send).send_denial_response(refusal.response())
        else:
            try:
                await self._streams(scope, receive, send)
            except Exception:
                LOGGER.exception("a stream failed")
        finally:
            service.metrics.request(scope["path"], status, time.perf_counter() - begin)
