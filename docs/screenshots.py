"""Take screenshots of the page of an environment, as NAME.png beside this script.

Owns which views are taken, and their sizes. Everything shown is real: a deployed environment on a real cluster.
It needs a browser, a Python that has `platform` with the extra `ui`, and an environment that is deployed from the
current folder; the settings are those of any command, such as ``PLATFORM_NAMESPACE``.
"""

from __future__ import annotations

import base64
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.browser import PROGRAMS  # noqa: E402 -- the tests' own browser
from tests.devtools import Tab, open_tab  # noqa: E402 -- as above

_DRAWN_S = 1.0
#: Name -> route, width, height, and whether it is dark.
VIEWS = {
    "ui-overview": ("", 1280, 1320, False),
    "ui-problem": ("service/worker", 1280, 620, False),
    "ui-logs": ("logs", 1280, 520, True),
    "ui-narrow": ("", 360, 720, True),
}


def take(tab: Tab, name: str) -> None:
    route, width, height, is_dark = VIEWS[name]
    scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
    tab.call("Emulation.setEmulatedMedia", features=[scheme])
    tab.resize(width, height)
    tab.run(f"location.hash = '#/{route}'")
    time.sleep(_DRAWN_S)
    picture = tab.call("Page.captureScreenshot", format="png")["data"]
    (ROOT / "docs" / f"{name}.png").write_bytes(base64.b64decode(picture))


def main() -> None:
    browser = next(path for path in map(shutil.which, PROGRAMS) if path)
    program = Path(sys.executable).with_name("platform")
    process = subprocess.Popen([program, "ui", "--no-browser"], stdout=subprocess.PIPE, text=True)
    url, code = (line.partition(":")[2].strip() for line in islice(process.stdout or (), 2))
    with tempfile.TemporaryDirectory() as folder, open_tab(browser, Path(folder)) as tab:
        tab.open(url)
        tab.run(f"sessionStorage.setItem('token', {code!r})")
        tab.open("about:blank")
        tab.open(url)
        tab.wait_for("document.querySelector('tbody') !== null")
        for name in VIEWS:
            take(tab, name)
    process.send_signal(signal.SIGINT)
    process.wait()


if __name__ == "__main__":
    main()
