"""A headless Chromium spoken to over a pipe, by the DevTools protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEADLINE = 30.0


def chromium() -> str | None:
    """Path of an installed Chromium."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in one browser; collects every event the page causes."""

    def __init__(self, profile: Path) -> None:
        read_commands, self._out = os.pipe()
        self._in, write_replies = os.pipe()
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run "
            "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
        )
        shell = f'exec "$0" {flags} "--user-data-dir=$1" about:blank 3<&$2 4>&$3'
        binary = chromium()
        assert binary is not None
        self._process = subprocess.Popen(
            ["bash", "-c", shell, binary, str(profile), str(read_commands), str(write_replies)],
            pass_fds=(read_commands, write_replies),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_replies)
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its reply."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        reply = self._wait(lambda m: m.get("id") == self._last)
        assert "error" not in reply, reply
        return reply["result"]

    def open(self, url: str) -> None:
        """Load a page to the end."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        seen = [e for e in self.events if e.get("method") == "Page.loadEventFired"]
        if not seen:
            self._wait(lambda m: m.get("method") == "Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def emulate(self, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Window size and colour preference."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def named(self, method: str) -> list[dict[str, Any]]:
        """Parameters of all events of one kind since the page was opened."""
        return [e["params"] for e in self.events if e.get("method") == method]

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def _wait(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            while b"\0" not in self._buffer:
                chunk = os.read(self._in, 1 << 16)
                assert chunk, "the browser closed the pipe"
                self._buffer += chunk
            raw, self._buffer = self._buffer.split(b"\0", 1)
            message = json.loads(raw)
            if "id" not in message:
                self.events.append(message)
            if wanted(message):
                return message
        raise TimeoutError("the browser did not answer")
