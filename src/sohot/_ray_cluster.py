"""The connection to a Ray cluster: succeeds or fails quickly, stays quiet, and is closed by whoever opened it."""

import importlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_ANSWER_SECONDS = 5.0


def import_ray(name: str = "ray") -> Any:
    """Import Ray, or a part of it.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModuleNotFoundError(f"{name} is missing ({error}): pip install 'sohot[ray]'", name="ray") from None


def slots(cpus: float, gpus: float) -> int:
    """Count the workers, with so many CPUs and GPUs each, that the machines of the connected cluster have room for."""
    return sum(
        _fitting(node["Resources"], cpus, gpus)
        for node in import_ray().nodes()
        if node["Alive"] and "Resources" in node
    )


def _fitting(resources: Mapping[str, float], cpus: float, gpus: float) -> int:
    """Count the workers that fit on one machine.

    >>> _fitting({"CPU": 8.0, "GPU": 1.0}, cpus=2, gpus=0), _fitting({"CPU": 8.0, "GPU": 1.0}, cpus=2, gpus=0.5)
    (4, 2)
    """
    wanted = {"CPU": cpus, "GPU": gpus}
    return min(int(resources.get(kind, 0) / each + 1e-6) for kind, each in wanted.items() if each)


def gpus_each(device: str) -> float:
    """Return how many GPUs a worker gets: one with "cuda", and with "auto" if the connected cluster has any."""
    wanted = device == "cuda" or (device == "auto" and import_ray().cluster_resources().get("GPU", 0) >= 1)
    return 1.0 if wanted else 0.0


@contextmanager
def connection(address: str | None, runtime_env: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Connect to a Ray cluster; if this process is already connected, use that connection and leave it open.

    Args:
        address: `HOST:PORT` or `ray://HOST:PORT`. None for the variable RAY_ADDRESS; without it Ray starts here.
        runtime_env: Ray's description of what workers need.

    Raises:
        ConnectionError: The cluster cannot be reached.
        ValueError: The address is malformed.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    if address is not None:
        check_reachable(address)
    with _quiet(ray):
        _connect(ray, address, runtime_env)
        try:
            yield
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str | None, runtime_env: Mapping[str, Any] | None) -> None:
    with _own_sigterm():
        try:
            with _nothing_on_stderr():  # it announces there that it heeds RAY_BACKEND_LOG_LEVEL
                ray.init(
                    address=address or "local",
                    runtime_env=dict(runtime_env) if runtime_env else None,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **({} if address else {"include_dashboard": False}),
                )
        except (OSError, RuntimeError, ValueError) as error:
            where = f"to the Ray cluster at {address}" if address else "to Ray on this machine"
            raise ConnectionError(f"cannot connect {where}: {' '.join(str(error).split())}") from error


def host_and_port(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    Raises:
        ValueError: It is malformed.

    Example:
        >>> host_and_port("10.0.0.1:6379"), host_and_port("ray://[::1]:10001")
        (('10.0.0.1', 6379), ('::1', 10001))
        >>> host_and_port("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: the address of a Ray cluster must be HOST:PORT, e.g. '10.0.0.1:6379', got 'nowhere'
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"the address of a Ray cluster must be HOST:PORT, e.g. '10.0.0.1:6379', got {address!r}")
    return host.strip("[]"), int(port)


def check_reachable(address: str) -> None:
    """Check that something listens; Ray itself would try for most of a minute and then end the process.

    Raises:
        ConnectionError: Nothing answers.
        ValueError: The address is malformed.
    """
    try:
        socket.create_connection(host_and_port(address), timeout=_ANSWER_SECONDS).close()
    except OSError as error:
        raise ConnectionError(f"cannot reach a Ray cluster at {address}: {error}") from None


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Keep Ray from printing on standard output, which is for results, and from sending usage statistics."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # below it are notes for developers, on standard error
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    # Ray prints notes on dead workers despite log_to_driver; only this switch, which has no public name, stops them.
    # The engine reports them in the outcome.
    worker = ray._private.worker
    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False
    try:
        yield
    finally:
        worker._worker_logs_enabled = before


@contextmanager
def _nothing_on_stderr() -> Iterator[None]:
    """Keep libraries that are not written in Python from printing."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep this process's SIGTERM handler, which Ray replaces when it connects."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:  # None: not set by Python
            signal.signal(signal.SIGTERM, before)
