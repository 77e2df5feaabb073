"""A process that has imported the whole package and runs its programs in forks of itself, each a process of its own.

Reads a request as a line of JSON and answers with one, see ``processes.Nursery``.
"""

import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import sys
import time
from typing import Any

TAIL = 200_000  # bytes of the output that are answered

Request = dict[str, Any]


def import_all() -> None:
    """Import what programs may need; what is missing here is for them to report."""
    import rlgames

    for module in pkgutil.walk_packages(rlgames.__path__, "rlgames."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("torch.utils.tensorboard", "bitbully", "chess.engine", "sqlite3"):
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"{name} is missing", file=sys.stderr)
    gc.collect()
    gc.freeze()


def serve() -> Request:
    """Answer requests to the end of the input; returns in the children, with what to run."""
    answers, requests = os.fdopen(os.dup(1), "w"), sys.stdin
    print("ready", file=answers, flush=True)
    for line in requests:
        request = json.loads(line)
        out, err = (os.memfd_create(name) for name in ("out", "err"))
        began = time.monotonic()
        child = os.fork()
        if not child:
            become(request, out, err)
            return request
        ended, status, memory = wait(child, request["limit"])
        texts = {"out": read(out), "err": read(err)}
        seconds = time.monotonic() - began
        answer = {"status": status, "ended": ended, "seconds": seconds, "memory": memory, **texts}
        print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)


def become(request: Request, out: int, err: int) -> None:
    """Make this fork look like a process that was started by the request's command line."""
    os.setsid()
    read_end, write_end = os.pipe()
    os.write(write_end, request["stdin"].encode())
    os.close(write_end)
    for number, stream in enumerate((read_end, out, err)):
        os.dup2(stream, number)
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [request["program"], *request["words"]]
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 # as long as the process lives


def wait(child: int, limit: float) -> tuple[bool, int, float]:
    """Whether ``child`` ended within ``limit`` seconds (else it is killed), its status, and its peak memory in MB."""
    handle = os.pidfd_open(child)
    ended = bool(select.select([handle], [], [], limit)[0])
    os.close(handle)
    try:
        os.killpg(child, signal.SIGKILL)  # its children too
    except ProcessLookupError:
        if not ended:  # before it had a group of its own
            os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return ended, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024


def read(stream: int) -> str:
    size = os.fstat(stream).st_size
    text = os.pread(stream, TAIL, max(0, size - TAIL)).decode(errors="replace")
    os.close(stream)
    return text


if __name__ == "__main__":
    import_all()
    program = f"rlgames.{serve()['program']}"
    sys.modules.pop(program, None)  # it runs as __main__
    runpy.run_module(program, run_name="__main__", alter_sys=True)
