"""Run a program and print what it took, as JSON: a small process of its own, as a child's memory counts its parent's.

Arguments: a file for its standard output, a file for its standard error, and the program's words.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading

MOST_SECONDS = 60


def main() -> None:
    output, errors, *args = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    with open(output, "wb") as out, open(errors, "wb") as err:
        child = subprocess.Popen(args, stdout=out, stderr=err)
    watch = threading.Timer(MOST_SECONDS, child.kill)
    watch.start()
    _, status, usage = os.wait4(child.pid, 0)
    watch.cancel()
    took = {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1024,
    }
    print(json.dumps(took))


if __name__ == "__main__":
    main()
