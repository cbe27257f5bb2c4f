"""Blocks of images on a Ray cluster, by Ray Data: a worker opens the network once and then takes block after block."""

import os
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from .._process import describe_error
from .._ray_cluster import connection, gpus_each, host_and_port, import_ray, slots
from .._start import prepare_process

TRIES = 4
"""How often a block is begun: if its worker dies each time, the block itself is to blame, mostly by its memory."""
_AHEAD = 2  # blocks that a worker is handed at a time: one more than it computes, so that it need not wait
_MOST_BESIDE_GPU = 8


class BlockFailed(RuntimeError):  # noqa: N818 - it names what happened
    """A block of images could not be computed."""


class BlockWork(Protocol):
    """What is done with blocks of images; must be picklable."""

    def open(self, device: str, read_threads: int) -> Callable[[Any], bytes]:
        """Load what is needed, in a worker; return what makes a shard of a block."""


class Done(NamedTuple):
    """A block that was computed: its number, its shard, and how often it was begun."""

    number: int
    content: bytes
    tries: int


@dataclass(frozen=True)
class RayBlocks:
    """A Ray cluster, or Ray on this machine, that computes blocks.

    Machines need the same versions of Python, Ray and sohot, and every path that the work and the blocks name. Only
    the process that calls `run` writes results. When a worker or a machine is lost, its blocks are computed again.

    Attributes:
        address: `HOST:PORT` of the cluster; None for the variable RAY_ADDRESS, and without it Ray on this machine.
        device: "auto", "cpu" or "cuda": with "auto", each worker has a GPU if the cluster has any.
        threads: CPUs of a worker; None for one, and beside a GPU its share of the machine's, at most 8.
        read_threads: Threads of a worker that read images; None for as many as it has CPUs.
    """

    address: str | None = None
    device: str = "auto"
    threads: int | None = None
    read_threads: int | None = None

    def __post_init__(self) -> None:
        if self.address is not None:
            host_and_port(self.address)

    def run(self, blocks: Iterable[tuple[int, Any]], work: BlockWork) -> Iterator[Done]:
        """Compute blocks.

        Args:
            blocks: Number and content of each.
            work: What to do with them.

        Yields:
            The blocks, as they are done.

        Raises:
            BlockFailed: The work failed, or its worker died again and again.
            ConnectionError: The cluster cannot be reached.
            ModuleNotFoundError: Ray Data is not installed.
            ValueError: No machine of the cluster is large enough for a worker.
        """
        task = pickle.dumps(work)  # here, where an error gives the reason
        items = [{"number": number, "block": pickle.dumps(block)} for number, block in blocks]
        if not items:
            return
        ray, data = import_ray(), _import_data()
        with connection(self.address), _failures_in_words(ray, data):
            gpus = gpus_each(self.device)
            cpus = float(self.threads or (_beside_gpu(ray.nodes()) if gpus else 1))
            if not (room := slots(cpus, gpus)):
                raise ValueError(f"no machine of the Ray cluster has {cpus:g} CPUs and {gpus:g} GPUs")
            tries = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Tries).remote()
            device = "cuda" if gpus else "cpu" if self.device == "auto" else self.device
            _set_up(data.DataContext.get_current())
            found = data.from_items(items, override_num_blocks=len(items)).map_batches(
                BlockWorker,
                fn_constructor_args=(task, tries, os.getcwd(), device, int(cpus), self.read_threads or int(cpus)),
                batch_size=1,
                concurrency=(min(room, len(items)), len(items)),  # more when machines join
                num_cpus=cpus,
                num_gpus=gpus,
            )
            del items
            for row in found.iter_rows():
                if row["error"]:
                    raise BlockFailed(row["error"])
                yield Done(row["number"], row["content"], row["tries"])


class Tries:
    """Counts how often blocks are begun; lives beside the workers, of which any may die."""

    def __init__(self) -> None:
        self._begun = Counter[int]()

    def begin(self, number: int) -> int:
        """Note that a block is begun; return how often it was."""
        self._begun[number] += 1
        return self._begun[number]


class BlockWorker:
    """A process that computes blocks.

    Args:
        task: The work, pickled: to read it imports torch, before which the process is prepared.
        tries: The `Tries`, as Ray passes it on.
        folder: The command's working folder, which relative paths start from.
        device: Where to compute.
        threads: Threads that compute.
        read_threads: Threads that read images.
    """

    def __init__(self, task: bytes, tries: Any, folder: str, device: str, threads: int, read_threads: int) -> None:
        self._task, self._tries, self._folder = task, tries, folder
        self._device, self._threads, self._read_threads = device, threads, read_threads
        self._compute: Callable[[Any], bytes] | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Compute one block; an error is part of the answer, as the command may not know its class."""
        number, content, error = int(batch["number"][0]), b"", ""
        tries = import_ray().get(self._tries.begin.remote(number))
        try:
            if tries > TRIES:
                raise RuntimeError(f"block {number} of the images has killed its worker {TRIES} times")
            if self._compute is None:
                self._compute = self._open()
            content = self._compute(pickle.loads(batch["block"][0]))
        except (Exception, SystemExit) as failure:
            error = f"a worker on {socket.gethostname()} failed: {describe_error(failure)}"
        return {"number": [number], "content": [content], "tries": [tries], "error": [error]}

    def _open(self) -> Callable[[Any], bytes]:
        prepare_process()
        with suppress(OSError):  # if there is no such folder, absolute paths will do
            os.chdir(self._folder)
        import torch

        torch.set_num_threads(self._threads)
        work: BlockWork = pickle.loads(self._task)
        return work.open(self._device, self._read_threads)


def _import_data() -> Any:
    try:
        return import_module("ray.data")
    except ImportError as error:
        raise ModuleNotFoundError(
            f"predict and features on Ray need Ray Data ({error}): pip install 'sohot[ray]'", name="ray"
        ) from None


def _set_up(context: Any) -> None:
    """Set what the driver does: it draws no bars, and hands workers few blocks ahead, so that all end together."""
    context.enable_progress_bars = False
    context.max_tasks_in_flight_per_actor = _AHEAD


def _beside_gpu(nodes: Iterable[Mapping[str, Any]]) -> int:
    """Return how many CPUs of a machine each of its GPUs can have; the least of all machines, at most 8.

    >>> _beside_gpu([{"Alive": True, "Resources": {"CPU": 16.0, "GPU": 4.0}}, {"Alive": False, "Resources": {}}])
    4
    """
    there = [node["Resources"] for node in nodes if node["Alive"]]
    shares = [int(one.get("CPU", 1) / one["GPU"]) for one in there if one.get("GPU", 0) >= 1]
    return min(max(min(shares, default=1), 1), _MOST_BESIDE_GPU)


@contextmanager
def _failures_in_words(ray: Any, data: Any) -> Iterator[None]:
    """Turn what Ray raises into one sentence."""
    kinds = (ray.exceptions.RayError, data.exceptions.UserCodeException, data.exceptions.SystemException)
    try:
        yield
    except SystemError as error:  # how Ray passes on what a signal handler raised
        raise error.__cause__ or error from None
    except kinds as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")
        raise BlockFailed(f"Ray could not go on: {last}; run the same command again to continue") from error
