"""What the harness asks the operating system: processes, their CPU and memory, sizes on disk."""

import os
import signal
from collections.abc import Iterable

import psutil


def tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def kill_tree(pid: int) -> None:
    for process in tree(pid):
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.Error:
            continue


def cpu_seconds(pids: Iterable[int]) -> float:
    total = 0.0
    for pid in pids:
        for process in tree(pid):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system
    return total


def memory_mb(pids: Iterable[int], *, children: bool = True) -> float:
    """Proportional set size in MiB."""
    total = 0
    for pid in pids:
        for process in tree(pid) if children else tree(pid)[:1]:
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
    return round(total / 2**20, 1)


def disk_bytes(path: str) -> int:
    """Bytes that the files below ``path`` occupy."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)
