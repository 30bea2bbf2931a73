"""A Chromium without a window, driven through a pipe as by a reader's hands.

It speaks the DevTools protocol over two file descriptors, so that no port is opened.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60.0  # seconds, on a machine that does other work
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-background-networking", "--disable-extensions",
    "--remote-debugging-pipe",
)  # fmt: skip
KEYS = {"Enter": 13, " ": 32, "Tab": 9, "Delete": 46}


class Browser:
    """A browser with one page, which records what the page asks the network for."""

    def __init__(self, profile, size=(1200, 900), dark=False):
        self.requests, self.errors, self._count, self._rest = [], [], 0, b""
        theirs_in, self._to = (
            fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in os.pipe()
        )
        self._from, theirs_out = (
            fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in os.pipe()
        )

        def connect():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self._process = subprocess.Popen(
            [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect, pass_fds=(3, 4), stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        target = self("Target.createTarget", url="about:blank")["targetId"]
        attached = self("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Network", "Page", "Runtime", "Log"):
            self(f"{domain}.enable")
        wide, high = size
        self("Emulation.setDeviceMetricsOverride", width=wide, height=high,
             deviceScaleFactor=1, mobile=False)  # fmt: skip
        if dark:
            scheme = {"name": "prefers-color-scheme", "value": "dark"}
            self("Emulation.setEmulatedMedia", features=[scheme])

    _session = None

    def __call__(self, method, **parameters):
        """The answer to a command of the protocol."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select(
                [self._from], [], [], end - time.monotonic()
            )
            assert ready, "the browser does not answer"
            self._rest += os.read(self._from, 1 << 20)
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        return message

    def open(self, url):
        """Open an address and wait until its page is there."""
        self("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def see(self, expression):
        """The value of an expression in the page; promises are awaited."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True,
                      awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in answer, (expression, answer)
        return answer["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true; fails if it never is."""
        end = time.monotonic() + PATIENCE
        while not self.see(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never: {expression}"
            time.sleep(0.05)

    def place(self, element):
        """The middle of an element that is scrolled into view."""
        return self.see(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    def point(self, element):
        """Move the mouse onto an element."""
        x, y = self.place(element)
        self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, element, modifiers=0):
        """Click an element with the mouse."""
        x, y = self.point(element)
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                 clickCount=1, modifiers=modifiers)  # fmt: skip

    def turn(self, element, steps):
        """Turn the wheel over an element."""
        x, y = self.point(element)
        self("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0,
             deltaY=steps)  # fmt: skip

    def press(self, key):
        """Press a key where the focus is."""
        code = {"key": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, words):
        """Type words where the focus is."""
        for letter in words:
            self(
                "Input.dispatchKeyEvent",
                type="keyDown",
                key=letter,
                text=letter,
            )
            self("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def picture(self, path):
        """Save what is seen as PNG."""
        path.write_bytes(
            base64.b64decode(self("Page.captureScreenshot")["data"])
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
