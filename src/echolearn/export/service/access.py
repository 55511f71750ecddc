"""Access: tokens, the names under which the service is reached, and pages of other sites."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from echolearn.export.service.limits import Refusal

TOKEN_VARIABLE = "ECHOLEARN_TOKEN"
SUBPROTOCOL = "echolearn"  # what a browser names beside token.TOKEN, and the service accepts
OPEN_PATHS = ("/health", "/ready")  # without a token: they say nothing but yes or no
_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9._~+-]{16,256}")


def read_token(file: Path | None) -> str | None:
    """Return the token from a file, or else from the environment variable; None if there is none."""
    if file is not None:
        token, where = file.read_text(encoding="utf-8").strip(), str(file)
    else:
        token, where = os.environ.get(TOKEN_VARIABLE, "").strip(), f"the environment variable {TOKEN_VARIABLE}"
        if not token:
            return None
    if not _TOKEN_PATTERN.fullmatch(token):
        raise ValueError(
            f"{where} holds no usable token; expected 16 to 256 letters, digits or any of . _ ~ + -, as from: "
            "openssl rand -hex 32"
        )
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").split("%")[0]).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """Access. token: None for everyone; origins: sites whose pages may ask; loopback: bound to this machine."""

    token: str | None = None
    origins: frozenset[str] = frozenset()
    loopback: bool = True

    @classmethod
    def of(cls, host: str, token: str | None, origins: Iterable[str] = ()) -> Access:
        """Return the access of a service at this host; other hosts than loopback require a token."""
        if token is None and not is_loopback(host):
            raise ValueError(
                f"--host {host} can be reached from other machines, and there is no token. Write one to a file "
                f"(openssl rand -hex 32 > token) and give --token-file token, or set {TOKEN_VARIABLE}; or stay with "
                "--host 127.0.0.1."
            )
        for origin in origins:
            parts = urlsplit(origin)
            if (
                parts.scheme not in ("http", "https")
                or not parts.netloc
                or origin != f"{parts.scheme}://{parts.netloc}"
            ):
                raise ValueError(f"--origin {origin!r:.80}; expected scheme and host, such as https://example.org.")
        return cls(token, frozenset(origins), is_loopback(host))

    def check(self, path: str, headers: Mapping[str, str], subprotocols: Iterable[str] = ()) -> None:
        self._check_host(headers.get("host", ""))
        self._check_origin(headers.get("origin"), headers.get("host", ""))
        if path not in OPEN_PATHS:
            self._check_token(headers.get("authorization", ""), subprotocols)

    def _check_host(self, host: str) -> None:
        """Refuse other names than those of this machine: a site could point its name here (DNS rebinding)."""
        if not self.loopback or self.token is not None:
            return
        name = _name(host)
        if not is_loopback(name) and name not in {_name(urlsplit(origin).netloc) for origin in self.origins}:
            raise Refusal(
                403, "host", f"the request is for host {host!r:.80}; expected localhost or 127.0.0.1. Behind a proxy, "
                "start the service with --origin and the public address."
            )  # fmt: skip

    def _check_origin(self, origin: str | None, host: str) -> None:
        if origin is None or origin in self.origins or origin in (f"http://{host}", f"https://{host}"):
            return
        raise Refusal(
            403, "origin", f"the request comes from a page of {origin!r:.80}, which may not send requests. Start the "
            "service with --origin and that address to allow it."
        )  # fmt: skip

    def _check_token(self, authorization: str, subprotocols: Iterable[str]) -> None:
        if self.token is None:
            return
        offered = [_offered(authorization), *(s.removeprefix("token.") for s in subprotocols if s.startswith("token."))]
        wanted = self.token.encode()
        if not any(hmac.compare_digest(one.encode("utf-8", "surrogateescape"), wanted) for one in offered):
            given = "another one was given" if any(offered) else "none was given"
            raise Refusal(
                401, "token", f"this service requires its token, and {given}; send Authorization: Bearer TOKEN.",
                {"WWW-Authenticate": 'Basic realm="echolearn", charset="UTF-8"'},
            )  # fmt: skip


def _name(host: str) -> str:
    """Return a host without its port."""
    return re.sub(r":\d*$", "", host).strip("[]").lower()


def _offered(authorization: str) -> str:
    """Return the token of a header: of a bearer, or the password of a browser's question."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""
