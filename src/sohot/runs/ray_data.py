"""Parts of a job on a Ray cluster, by Ray Data: a worker opens its network once and then takes part after part."""

import os
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from .._process import describe_error
from .._ray_cluster import connection, gpus_each, import_ray, slots
from .._start import prepare_process

Compute = Callable[[Any], bytes]  # of a part
Opens = Callable[[str, int], Compute]  # called once in each worker, with its device and its reading threads
_READERS = 8  # beside a GPU
_TRIES = 4  # if its worker dies each time, the part itself is to blame, mostly by its memory


class ClusterFailed(ConnectionError):  # noqa: N818 - it names what happened
    """A cluster could not compute a part."""


class Cluster(NamedTuple):
    """Ray at an address, or on this machine; a worker has a GPU if there are any, and `threads` CPUs, or one."""

    address: str | None
    device: str
    threads: int | None
    read_threads: int | None


def parts_of(out: Path) -> Path:
    """Name the folder of the parts of a file, which whoever has written the file removes."""
    return out.with_name(f"{out.name}.parts")


def compute(cluster: Cluster, parts: Mapping[int, Any], opens: Opens) -> Iterator[tuple[int, bytes]]:
    """Compute parts; yield the number and the result of each as it is done."""
    ray, data = import_ray(), import_ray("ray.data")
    with connection(cluster.address), _in_words(ray, data):
        gpus, cpus = gpus_each(cluster.device), cluster.threads or 1
        if not (room := slots(cpus, gpus)):
            raise ValueError(f"no machine of the Ray cluster has {cpus} CPUs and {gpus:g} GPUs")
        device = "cuda" if gpus else "cpu" if cluster.device == "auto" else cluster.device
        readers = cluster.read_threads or (_READERS if gpus else cpus)
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.max_tasks_in_flight_per_actor = 2  # one more than a worker computes, so that it need not wait
        tries = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Tries).remote()
        items = [{"number": number, "part": pickle.dumps(part)} for number, part in parts.items()]
        results = data.from_items(items, override_num_blocks=len(items)).map_batches(
            _Worker,
            fn_constructor_args=(pickle.dumps(opens), tries, os.getcwd(), device, cpus, readers),
            batch_size=1,
            concurrency=(min(room, len(items)), len(items)),  # more when machines join
            num_cpus=cpus,
            num_gpus=gpus,
        )
        for row in results.iter_rows():
            if row["error"]:
                raise ClusterFailed(row["error"])
            yield row["number"], row["result"]


class _Tries:
    """Counts how often parts are begun; lives beside the workers, of which any may die."""

    def __init__(self) -> None:
        self._begun = Counter[int]()

    def begin(self, number: int) -> int:
        """Note that a part is begun; return how often it was."""
        self._begun[number] += 1
        return self._begun[number]


class _Worker:
    """A process that computes parts."""

    def __init__(self, opens: bytes, tries: Any, folder: str, device: str, threads: int, readers: int) -> None:
        prepare_process()  # before what is unpickled imports torch
        with suppress(OSError):  # if there is no such folder, absolute paths will do
            os.chdir(folder)
        self._opens, self._tries, self._threads, self._place = opens, tries, threads, (device, readers)
        self._compute: Compute | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Compute one part; an error is part of the answer, as the command may not know its class."""
        import torch

        number, result, error = int(batch["number"][0]), b"", ""
        try:
            if import_ray().get(self._tries.begin.remote(number)) > _TRIES:
                raise RuntimeError(f"images from number {number} on have killed their worker {_TRIES} times")
            torch.set_num_threads(self._threads)
            self._compute = self._compute or pickle.loads(self._opens)(*self._place)
            result = self._compute(pickle.loads(batch["part"][0]))
        except (Exception, SystemExit) as failure:
            error = f"a worker on {socket.gethostname()} failed: {describe_error(failure)}"
        return {"number": [number], "result": [result], "error": [error]}


@contextmanager
def _in_words(ray: Any, data: Any) -> Iterator[None]:
    """Turn what Ray raises into one sentence."""
    try:
        yield
    except SystemError as error:  # how Ray passes on what a signal handler raised
        raise error.__cause__ or error from None
    except (ray.exceptions.RayError, data.exceptions.UserCodeException, data.exceptions.SystemException) as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")
        raise ClusterFailed(f"Ray could not go on: {last}; run the same command again to continue") from error
