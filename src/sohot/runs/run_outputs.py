"""What a run's network makes of its images: the logits of the test, and features before and after training."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from .._files import write_atomically
from ..data.image_batches import ImageInputs, iter_batches
from ..data.labelled import LabelledImages, Progress
from ..data.shots import shot_rows
from ..networks.inference import run_batches
from ..networks.two_streams import TwoStreams
from ..training.evaluation import Evaluation, evaluate, predict_logits
from ..training.inputs import Inputs
from .loaded_run import LoadedModel

OUTPUTS = "test_outputs.safetensors"
"""The file of these outputs in a run's folder."""

FORMAT = "1"

PER_CLASS = 20
"""Features are kept of at most so many images of each class, chosen as shots are: enough for pictures."""

IMAGE_BATCH, OUTPUT_BATCH = 32, 256
"""Numbers of images and of trunk outputs to classify together."""

_TENSORS = ("rows", "before", "after")
POOL_LOGITS = "pool.logits"


@dataclass(frozen=True)
class SideFeatures:
    """Features at the aligned layer, of some images of one side of the run's split.

    Attributes:
        rows: Which images: their places in the list of the side in `split.json`, shape (n,).
        before: Their features before training, shape (n, d).
        after: Their features after training, shape (n, d).
    """

    rows: Tensor
    before: Tensor
    after: Tensor

    def of(self, rows: Tensor) -> "SideFeatures":
        """Keep the features of some of the images."""
        kept = torch.isin(self.rows, rows)
        return SideFeatures(self.rows[kept], self.before[kept], self.after[kept])


@dataclass(frozen=True)
class RunOutputs:
    """The outputs of a run, as float32 on the CPU.

    Attributes:
        features: Features by part: "source" and "target", the images that train, "test" and "pool"; those there are.
        logits: Logits of all test images, in the order of `split.json`, shape (images, classes); None without a test.
        first_logits: The same before training; not stored, and None if nobody asked.
        pool_logits: Logits of all unlabelled images, in the order of `split.json`; None without a pool.
    """

    features: dict[str, SideFeatures]
    logits: Tensor | None = None
    first_logits: Tensor | None = None
    pool_logits: Tensor | None = None


class Shown(NamedTuple):
    """Images, None if there are none; and the outputs of the frozen trunk for them, None to read the images."""

    images: LabelledImages | None = None
    from_trunk: Inputs | None = None


class OutputRecorder:
    """Passes images through a network as it was when the recorder was made, and as it has become.

    The frozen trunk is the same in both, so each image passes it once.

    Args:
        model: The two streams, not trained yet.
        workers: Threads that read images.
        tests_both: Whether to classify the test images with the network as it was, too.
    """

    def __init__(self, model: TwoStreams, workers: int | None = None, *, tests_both: bool = False) -> None:
        self.model, self.workers, self.tests_both = model, workers, tests_both
        self.untrained = deepcopy(model, {id(model.trunks): model.trunks})

    def record(
        self, source: Shown, target: Shown, test: Shown, pool: Shown | None = None, progress: Progress | None = None
    ) -> RunOutputs:
        """Record the outputs of source and target images that train, of the test images and of the pool.

        Args:
            source: Source images that train.
            target: Target images that train.
            test: Test images.
            pool: Target images without labels; those that are tested pass the network once.
            progress: Receives the number of images tested and labelled.
        """
        features = {}
        for part, shown in (("source", source), ("target", target)):
            if shown.images is not None:
                rows = _some_of_each_class(shown.images)
                features[part], *_ = self._pass(part, shown.images, shown.from_trunk, rows, rows)
        pool = Shown() if pool is None else pool
        kept = torch.empty(0, dtype=torch.int64) if pool.images is None else self._some_of_pool(pool.images)
        logits, first_logits, pool_logits = None, None, None
        if test.images is not None:
            some, shared = _some_of_each_class(test.images), _are_same(test.images, pool.images)
            every, both = torch.arange(len(test.images)), torch.unique(torch.cat([some, kept])) if shared else some
            found, logits, before = self._pass(
                *("target", test.images, test.from_trunk, every, both, _of_stage(progress, "testing")),
                classified_before=every if self.tests_both else both,
            )
            features["test"], first_logits = found.of(some), before if self.tests_both else None
            if shared:
                features["pool"], pool_logits = found.of(kept), logits
        if pool.images is not None and pool_logits is None:
            every, told = torch.arange(len(pool.images)), _of_stage(progress, "labelling the unlabelled images")
            features["pool"], pool_logits, _ = self._pass("target", pool.images, pool.from_trunk, every, kept, told)
        return RunOutputs(features, logits, first_logits, pool_logits)

    def _some_of_pool(self, pool: LabelledImages) -> Tensor:
        """Choose as many rows as there would be of so many classes, had they labels."""
        return torch.tensor(sorted(shot_rows(pool, PER_CLASS * self.model.num_classes, seed=0)), dtype=torch.int64)

    @torch.inference_mode()
    def _pass(
        self,
        domain: str,
        images: LabelledImages,
        from_trunk: Inputs | None,
        rows: Tensor,
        kept: Tensor,
        told: Callable[[int, int], None] | None = None,
        classified_before: Tensor | None = None,
    ) -> tuple[SideFeatures, Tensor, Tensor]:
        """Pass rows through the network, and some of them, by default `kept`, through the network as it was.

        Returns:
            The features of the rows in `kept`, and the logits of all rows after and of some before training.
        """
        like = next(self.model.parameters())
        self.model.eval()
        self.untrained.to(like.device, like.dtype).eval()
        both = kept if classified_before is None else classified_before
        before, after, logits, first_logits = [], [], [], []
        done = 0
        chunks = torch.split(rows, IMAGE_BATCH if from_trunk is None else OUTPUT_BATCH)
        for some, outputs in zip(chunks, self._trunk_outputs(domain, images, from_trunk, chunks), strict=True):
            batch = outputs.to(like.device, like.dtype)
            output = _stream(self.model, domain, batch)
            logits.append(output[1])
            chosen, again = torch.isin(some, kept), torch.isin(some, both)
            after.append(output[0][chosen])
            if again.any():
                features, classified = _stream(self.untrained, domain, batch[again.to(batch.device)])
                before.append(features[chosen[again]])
                first_logits.append(classified)
            done += len(some)
            if told is not None:
                told(done, len(rows))
        return SideFeatures(kept, torch.cat(before), torch.cat(after)), torch.cat(logits), torch.cat(first_logits)

    def _trunk_outputs(
        self, domain: str, images: LabelledImages, from_trunk: Inputs | None, chunks: Sequence[Tensor]
    ) -> Iterator[Tensor]:
        if from_trunk is not None:
            return map(from_trunk.batch, chunks)
        read = ImageInputs(images, self.model.inputs[domain], self.workers)
        device = next(self.model.parameters()).device
        return run_batches(self.model.trunk(domain), map(read.batch, chunks), device)


def _stream(model: TwoStreams, domain: str, from_trunk: Tensor) -> tuple[Tensor, Tensor]:
    """Return the features and logits of one domain's stream for outputs of its trunk."""
    source, target = (from_trunk, None) if domain == "source" else (None, from_trunk)
    output = model(source, target, from_trunk=True)
    features, logits = (getattr(output, f"{domain}_{kind}") for kind in ("features", "logits"))
    return features.float().cpu(), logits.float().cpu()


def _of_stage(progress: Progress | None, stage: str) -> Callable[[int, int], None] | None:
    return None if progress is None else partial(progress, stage)


def _are_same(one: LabelledImages, other: LabelledImages | None) -> bool:
    return other is not None and (one.files, one.parts) == (other.files, other.parts)


def _some_of_each_class(images: LabelledImages) -> Tensor:
    return torch.tensor(sorted(shot_rows(images, PER_CLASS, seed=0)), dtype=torch.int64)


def evaluate_on(
    model: TwoStreams,
    images: LabelledImages,
    workers: int | None = None,
    progress: Progress | None = None,
    outputs: Inputs | None = None,
) -> Evaluation:
    """Classify images with the target stream and compare with the truth.

    Args:
        model: The trained streams.
        images: Images with their classes, numbered as in training.
        workers: Threads that read images.
        progress: Receives the number of images tested.
        outputs: Outputs of the target's trunk for the images, if available; None to read the images.

    Returns:
        Accuracies with their 95 % intervals and the confusion matrix.
    """
    logits = target_logits(model, images, workers, progress, outputs)
    return evaluate(logits, torch.tensor(images.labels), images.classes)


def target_logits(
    model: TwoStreams,
    images: LabelledImages,
    workers: int | None = None,
    progress: Progress | None = None,
    outputs: Inputs | None = None,
) -> Tensor:
    """Classify images with the target stream; the arguments are those of `evaluate_on`."""
    if outputs is None:
        batches = iter_batches(images, model.inputs["target"], IMAGE_BATCH, workers)
        found = run_batches(model.target_only(), batches, next(model.parameters()).device)
        return _collect(found, len(images), progress)
    return predict_logits(model, outputs, batch_size=OUTPUT_BATCH, from_trunk=True)


def logits_of(
    model: LoadedModel, images: LabelledImages, workers: int | None = None, progress: Progress | None = None
) -> Tensor:
    """Classify images with a run or a head from its folder, as `target_logits` does with a model that was trained."""
    size = max(IMAGE_BATCH // model.views, 1)
    batches = iter_batches(images, model.input, size, workers, views=model.views)
    return _collect(model.logits(batches), len(images), progress)


def _collect(batches: Iterable[Tensor], images: int, progress: Progress | None) -> Tensor:
    rows: list[Tensor] = []
    for some in batches:
        rows += some.float()
        if progress is not None:
            progress("testing", len(rows), images)
    return torch.stack(rows)


def write_outputs(folder: Path, outputs: RunOutputs) -> None:
    """Store the outputs of a run: `logits`, `pool.logits`, and `rows`, `before` and `after` of each part."""
    given = {"logits": outputs.logits, POOL_LOGITS: outputs.pool_logits}
    tensors = {name: logits.clone() for name, logits in given.items() if logits is not None}  # they may be the same
    for part, features in outputs.features.items():
        tensors |= {f"{part}.{name}": getattr(features, name).contiguous() for name in _TENSORS}
    write_atomically(folder / OUTPUTS, save(tensors, {"format": FORMAT}))


def read_outputs(folder: Path) -> RunOutputs | None:
    """Read the outputs of a run; None if its folder has none.

    Raises:
        ValueError: The file is damaged, or holds something else.
    """
    file = folder / OUTPUTS
    if not file.is_file():
        return None
    try:
        tensors = load_file(file)
        parts = dict.fromkeys(name.split(".")[0] for name in tensors if name != "logits")
        features = {part: SideFeatures(*(tensors[f"{part}.{name}"] for name in _TENSORS)) for part in parts}
    except (OSError, SafetensorError, KeyError) as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    for part in features.values():
        if not len(part.rows) == len(part.before) == len(part.after) or part.before.shape != part.after.shape:
            raise ValueError(f"{file} is damaged: its tensors differ in length")
    return RunOutputs(features, tensors.get("logits"), pool_logits=tensors.get(POOL_LOGITS))
