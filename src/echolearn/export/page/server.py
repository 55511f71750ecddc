"""One page on loopback, for `echolearn explore`."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOPBACK = "127.0.0.1"
PAGE_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageServer(ThreadingHTTPServer):
    """A server of one page on loopback, which answers nothing else; port 0: any free one."""

    daemon_threads = True

    def __init__(self, page: str, policy: str, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.content = page.encode("utf-8")
        self.policy = f"{policy}; frame-ancestors 'none'"

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    @property
    def own_names(self) -> tuple[str, str]:
        """The names by which a browser on this machine reaches the server; any other name belongs to a foreign page."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "echolearn", ""
    timeout = 10  # seconds that a client may take to say what it wants

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        if self.headers.get("Host") not in self.server.own_names:
            self.send_error(HTTPStatus.FORBIDDEN, "This page answers only to its own address.")
            return
        if self.path.split("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND, "There is one page here: /")
            return
        self.send_response(HTTPStatus.OK)
        for name, value in PAGE_HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        if with_body:
            self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the page is for the person who started the command."""
