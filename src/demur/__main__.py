"""`python -m demur` is `demur`: the command line as a process, which ends within two seconds of Ctrl-C or SIGTERM."""

import os
import signal
import sys
import threading
import time

_SECONDS_TO_END = 1.5


def process() -> None:
    """Run the command line in this process, which it is the last to do."""
    usual = signal.default_int_handler
    if at_once := signal.getsignal(signal.SIGINT) is usual:  # nothing is to be saved while modules are imported
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from demur.cli import main

    if at_once:
        signal.signal(signal.SIGINT, usual)
    if os.getpid() == 1:  # the first process of a container gets no signal that it does not handle
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signals, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)  # a signal is seen even if the main thread is in C code
    threading.Thread(target=_end_in_time, args=(signals,), daemon=True).start()
    main()


def _end_in_time(signals: int) -> None:
    """End the process if it does not end by itself. A verb with an end of its own, `serve`, takes the signals over."""
    while (number := os.read(signals, 1)[0]) not in (signal.SIGINT, signal.SIGTERM):
        pass
    time.sleep(_SECONDS_TO_END)
    os.write(2, b"Stopped at once; what was saved before is safe.\n")
    os._exit(128 + number)


if __name__ == "__main__":
    process()
