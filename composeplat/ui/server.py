"""The server of the page: its files, its documents as streams, and the actions.

Owns the paths, and how each request is answered once :mod:`composeplat.ui.access` lets it through.
Must not know what a document says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from composeplat.diagnostics import ComposeplatError
from composeplat.ui.access import API_PREFIX, RESPONSE_HEADERS, SIGN_IN_PATH, Gate, Head, Refusal
from composeplat.ui.actions import ActionRefused, Actions, Commands, Name
from composeplat.ui.log_batches import Batches
from composeplat.ui.site import Environment, LogRequest, Site
from composeplat.ui.stream_turns import StreamTurns
from composeplat.ui.topics import Hub

PAGE_FOLDER = Path(__file__).parent / "page"
_STREAM_TYPE = "application/x-ndjson"
_MAX_BODY_BYTES = 64 * 1024
_MAX_TAIL_DIGITS = 9


class Served:
    """An environment with its hub and its actions."""

    def __init__(self, environment: Environment, loop: asyncio.AbstractEventLoop) -> None:
        self.environment = environment
        self.hub = hub = Hub(environment.sources, loop)
        self.actions: Actions | None = None
        if environment.arguments is not None:
            self.actions = Actions(
                Commands(
                    arguments=environment.arguments,
                    read_stamp=environment.read_stamp,
                    publish=lambda data: hub.publish("action", data),
                )
            )


class Server:
    """Answers the requests of the page."""

    def __init__(self, site: Site, gate: Gate) -> None:
        self._site, self.gate = site, gate
        self._served: dict[tuple[str, str], Served] = {}
        self._hub: Hub | None = None
        self._turns = StreamTurns()
        of_environment = f"{API_PREFIX}environments/{{namespace}}/{{name}}"
        self.app: ASGIApp = Starlette(
            routes=[
                Route(SIGN_IN_PATH, self._sign_in, methods=["POST"]),
                Route(f"{API_PREFIX}page", self._page),
                Route(f"{API_PREFIX}stream", self._stream_site),
                Route(f"{of_environment}/stream", self._stream),
                Route(f"{of_environment}/logs", self._logs),
                Route(f"{of_environment}/actions/{{action}}", self._act, methods=["POST"]),
                Mount("/", StaticFiles(directory=PAGE_FOLDER, html=True)),
            ],
            middleware=[Middleware(Guard, gate=gate)],
            exception_handlers={HTTPException: _show_error},
        )

    def stop(self) -> None:
        """End all reading, and wait for the action that runs."""
        for served in self._served.values():
            served.hub.stop()
            if served.actions is not None:
                served.actions.stop()
        if self._hub is not None:
            self._hub.stop()

    async def _sign_in(self, request: Request) -> Response:
        """Give the page the code that a form on this machine's disk has: a script of ours takes it from here."""
        form = parse_qs((await _read_body(request)).decode("utf-8", "replace"))
        code = form.get("code", [""])[0]
        if not self.gate.knows(code):
            return HTMLResponse(_SIGN_IN_REFUSED, HTTPStatus.UNAUTHORIZED)
        return HTMLResponse(_SIGN_IN.replace("CODE", escape(code)))

    async def _page(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._site.page))

    async def _stream_site(self, _: Request) -> Response:
        if self._hub is None:
            self._hub = Hub(self._site.sources, asyncio.get_running_loop())
        return self._respond(_read(self._hub))

    async def _stream(self, request: Request) -> Response:
        return self._respond(_read((await self._find(request)).hub))

    async def _logs(self, request: Request) -> Response:
        found = await self._find(request)
        tail = request.query_params.get("tail", "")[:_MAX_TAIL_DIGITS]
        asked = LogRequest(
            services=tuple(request.query_params.getlist("service")), tail=int(tail) if tail.isdecimal() else None
        )
        batches = Batches(await run_in_threadpool(found.environment.open_logs, asked))
        return self._respond(batches.read())

    def _respond(self, lines: AsyncGenerator[bytes]) -> Response:
        return StreamingResponse(self._turns.take(lines), media_type=_STREAM_TYPE)

    async def _act(self, request: Request) -> Response:
        found = await self._find(request)
        action, body = request.path_params["action"], await _read_json(request)
        if found.actions is None:
            raise HTTPException(HTTPStatus.FORBIDDEN, "this page changes nothing: it was started with --read-only")
        if action not in list(Name):
            raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such action")
        services, preview_id = body.get("services") or [], body.get("preview_id") or ""
        if not isinstance(services, list) or not isinstance(preview_id, str):
            raise HTTPException(HTTPStatus.BAD_REQUEST, "services must be a list, and preview_id a text")
        if not all(isinstance(name, str) and name and name.isprintable() for name in services):
            raise HTTPException(HTTPStatus.BAD_REQUEST, "services must be names of services")
        try:
            await run_in_threadpool(found.actions.start, Name(action), services, preview_id)
        except ComposeplatError as error:
            status = HTTPStatus.CONFLICT if isinstance(error, ActionRefused) else HTTPStatus.BAD_REQUEST
            return JSONResponse({"message": str(error), "hint": error.hint}, status)
        return JSONResponse({}, HTTPStatus.ACCEPTED)

    async def _find(self, request: Request) -> Served:
        key = request.path_params["namespace"], request.path_params["name"]
        if key not in self._served:
            environment = await run_in_threadpool(self._site.find, *key)
            if environment is None:
                raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such environment")
            self._served.setdefault(key, Served(environment, asyncio.get_running_loop()))
        return self._served[key]


async def _read(hub: Hub) -> AsyncGenerator[bytes]:
    async with hub.subscribe() as subscription:
        async for lines in subscription.lines():
            yield lines


async def _read_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
    return body


async def _read_json(request: Request) -> Mapping[str, object]:
    try:
        data = json.loads(await _read_body(request) or b"{}")
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "the body must be an object of JSON")
    return data


async def _show_error(_: Request, error: Any) -> Response:
    return JSONResponse({"message": error.detail, "hint": ""}, error.status_code)


class Guard:
    """Lets only those requests through that the gate does, and sets the headers of every response."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.lower().encode(), value.encode()) for name, value in RESPONSE_HEADERS.items()]
                message["headers"] = [*message["headers"], *ours]
            await send(message)

        if scope["type"] != "http":
            # A connection of another kind, such as a WebSocket, is closed by the server that has no answer.
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._gate.check(Head(method=scope["method"], path=scope["path"], headers=headers))
        answer: ASGIApp = self._app if refusal is None else _refuse(refusal)
        await answer(scope, receive, send_with_headers)


def _refuse(refusal: Refusal) -> Response:
    return JSONResponse({"message": refusal.message, "hint": ""}, refusal.status)


_SIGN_IN = """\
<!doctype html>
<html lang="en">
<title>platform</title>
<meta name="code" content="CODE">
<script src="/js/sign-in.js"></script>
<p>Opening the page …</p>
"""
_SIGN_IN_REFUSED = """\
<!doctype html>
<html lang="en">
<title>platform</title>
<p>This code is of another run of platform ui. The terminal shows the address and the code.</p>
"""
