"""Runs one candidate's process and watches it: times of metrics lines, memory, and the load of other processes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Run(NamedTuple):
    lines: list  # metrics: what the program wrote, and under "at" seconds since its start
    wall_s: float
    peak_bytes: int  # of the process itself: the largest resident set, which the kernel keeps (VmHWM)
    tree_bytes: int  # of it and its children, which are sampled
    children: bool  # whether it ever had any
    others_cpus: float  # processors that other programs kept busy, between the first and the last line
    load: float  # load average of a minute, before the start
    exit_code: int  # 124: it ran past the time limit
    tail: str  # end of standard output and error


def load_average():
    with open("/proc/loadavg", encoding="ascii") as file:
        return float(file.read().split()[0])


def machine_busy_s():
    """Processor seconds since boot that were not idle, of all processors."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state on; nothing when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def process_s(pid):
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S if fields else None


def others_in_session(session):
    """Running processes of a session other than its leader."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != session:
            fields = stat_fields(name)
            if fields and fields[0] not in "ZX" and int(fields[3]) == session:
                found.append(int(name))
    return found


def resident_bytes(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid):
    """Resident memory, with pages shared by n processes counted as 1/n."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Watch:
    """Samples of a running process."""

    def __init__(self, pid):
        self.pid, self.start = pid, time.monotonic()
        self.tree_bytes, self.children_bytes, self.children = 0, 0, False
        self.marks = []  # (time, the machine's busy seconds, the process's)
        self.next_sample = 0.0

    def elapsed(self):
        return time.monotonic() - self.start

    def sample(self, pause):
        """Looks at memory unless it did so less than `pause` seconds ago."""
        if self.elapsed() < self.next_sample:
            return
        children = others_in_session(self.pid)
        self.children |= bool(children)
        self.children_bytes = sum(map(proportional_bytes, children))
        self.tree_bytes = max(self.tree_bytes, resident_bytes(self.pid) + self.children_bytes)
        self.next_sample = self.elapsed() + pause

    def mark(self):
        own = process_s(self.pid)
        if own is not None:
            self.marks = self.marks[:1] + [(time.monotonic(), machine_busy_s(), own)]

    def others_cpus(self):
        if len(self.marks) < 2 or self.marks[1][0] - self.marks[0][0] <= 0:
            return 0.0
        (start, busy, own), (end, busy_end, own_end) = self.marks
        return max(0.0, ((busy_end - busy) - (own_end - own)) / (end - start))


class Lines:
    """JSON lines from a pipe, with the time at which each came."""

    def __init__(self, reader):
        self.reader, self.rest, self.all = reader, b"", []

    def wait(self, seconds, now):
        """Reads output that comes within so many seconds; returns whether a line was complete."""
        if self.reader is None:
            time.sleep(min(seconds, 0.005))
            return False
        ready, _, _ = select.select([self.reader], [], [], seconds)
        chunk = os.read(self.reader, 1 << 16) if ready else b""
        if ready and not chunk:  # closed: what remains is to wait for the process's end
            time.sleep(min(seconds, 0.005))
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        self.all += [{"at": now(), **json.loads(line)} for line in whole if line.strip()]
        return bool(whole)


def run(command, log, environment, processors, time_limit_s, metrics_option=None):
    """Runs `command` on the given processors as a session of its own. With metrics_option, a pipe's name follows it."""
    command = list(map(str, command))
    reader = writer = None
    if metrics_option:
        reader, writer = os.pipe()
        command += [metrics_option, f"/dev/fd/{writer}"]
    load = load_average()
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   env=environment, start_new_session=True, pass_fds=[writer] if writer else [],
                                   preexec_fn=lambda: os.sched_setaffinity(0, processors))
    watch, lines = Watch(process.pid), Lines(reader)
    if writer:
        os.close(writer)
    try:
        usage, code = follow(process, lines, watch, time_limit_s)
        wall = watch.elapsed()
    finally:
        end_session(process)
        if reader:
            os.close(reader)
    peak = usage.ru_maxrss * 1024
    # The peak is reached in the steps, while the children that are left hold their memory too.
    tree = max(watch.tree_bytes, peak + watch.children_bytes)
    with open(log, encoding="utf-8", errors="replace") as output:
        tail = output.read()[-4000:]
    return Run(lines.all, wall, peak, tree, watch.children, watch.others_cpus(), load, code, tail)


def follow(process, lines, watch, time_limit_s):
    """(resource usage, exit code) once the process has ended."""
    timed_out = False
    while True:
        # Looking often is for compilers' short-lived processes; while steps are timed, it would take time from them.
        pause = 1.0 if lines.all else 0.1
        if lines.wait(pause, watch.elapsed):
            watch.mark()
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            lines.wait(0, watch.elapsed)
            return usage, 124 if timed_out else process.returncode
        watch.sample(pause)
        if watch.elapsed() > time_limit_s and not timed_out:
            timed_out = True
            process.kill()


def end_session(process):
    """Ends processes that the process left behind, such as a compiler's workers, and waits for their end."""
    if process.returncode is None:
        process.kill()
        process.wait()
    give_up = time.monotonic() + 10
    while (left := others_in_session(process.pid)) and time.monotonic() < give_up:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
