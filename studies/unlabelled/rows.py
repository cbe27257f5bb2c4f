"""What the study of unlabelled images compares: the rows of its tables, in the order of their importance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sohot.data.pools import INDUCTIVE, SUPERVISED, TRANSDUCTIVE
from sohot.experiments.grid import Grid
from sohot.methods.choices import TWO_PASSES

BUDGET = {"steps": 300, "batch_rows": 128, "pool_rows": 64, "precision": "bf16-mixed"}
"""The same for every row: steps, labelled and unlabelled images in each."""

POOLED: Mapping[str, Mapping[str, Any]] = {
    "office31": {"pool_loss": "adamatch", "lr": 0.01, "neighbours": 5, "threshold": 0.8},
    "pacs": {"pool_loss": "adamatch", "lr": 0.01, "neighbours": 5, "threshold": 0.8},
}
"""How pseudo-labels are learned, by data set: chosen on development splits of the other one, which chose the same."""

FIRST_STUDY = ("so+zeta", "so+to", "variance", "ccsa", "dsne", "supcon", "l2-sp", "dage", "lp-ft")
"""Methods without unlabelled images that the first study compared on Office-31, beside those of this one."""

RATES: Mapping[str, Mapping[str, float]] = {
    "office31": {
        **dict.fromkeys(("s+t", "means", "m", "so", "so+to+fo+zeta", *FIRST_STUDY), 0.01),
        **dict.fromkeys(("im", "fixmatch", "adamatch"), 0.01),
    },
    "pacs": {"s+t": 0.001, "m": 0.001, "im": 0.01, "mcc": 0.01, "fixmatch": 0.01, "adamatch": 0.01},
}
"""Learning rates of the other rows, chosen likewise; 0.003 where none is named."""

STYLED = {"batch_norm": TWO_PASSES}
"""The mean over two passes, by the network's statistics of batch normalisation and by those of the target images."""

LABELS = {"office31": {"A": 20, "W": 8, "D": 8}, "pacs": {"photo": 20, "cartoon": 20}}
"""Labelled source images per class: the usual numbers."""
SHIFTS = {"office31": ("A-W", "A-D", "W-A", "W-D", "D-A", "D-W"), "pacs": ("photo-cartoon", "cartoon-photo")}


@dataclass(frozen=True)
class Row:
    """A row of a table: a way to train, and the splits on which it is tested."""

    data: str
    name: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    pool: str = SUPERVISED
    splits: tuple[int, ...] = (1, 2, 3, 4, 5)
    shots: int = 3
    shifts: tuple[str, ...] = ()
    phase: int = 1
    backbone: str = "lite0"

    def grid(self) -> Grid:
        """Return it as a grid; development splits of Office-31, of which the paper has ten, are drawn likewise."""
        own: dict[str, Any] = {"dataset": "office31", "protocol": "paper", "splits": self.splits}
        draw: dict[str, Any] = {"target_shots": self.shots}
        if self.data == "pacs" or self.splits[0] > 100:
            source = (self.shifts or SHIFTS[self.data])[0].split("-")[0]
            own |= {"protocol": "k-shot", "dataset": "domains" if self.data == "pacs" else "office31"}
            draw |= {"source_shots": LABELS[self.data][source]}
        return Grid(
            "study",
            **own,
            shifts=self.shifts or SHIFTS[self.data],
            methods=(self.method,),
            backbone=self.backbone,
            settings={**self.settings, **draw},
            pool=(self.pool,),
        )


def supervised(data: str, name: str, method: str, **settings: Any) -> Row:
    """Return a row without unlabelled images."""
    return Row(data, name, method, {**BUDGET, "lr": RATES[data].get(name, 0.003), **settings})


def published(data: str, name: str) -> Row:
    """Return a row of a published way to learn from unlabelled images."""
    return Row(data, name, name, {**BUDGET, "lr": RATES[data].get(name, 0.003)}, TRANSDUCTIVE)


def pseudo(data: str, name: str, method: str = "s+t", **settings: Any) -> Row:
    """Return a row of pseudo-labels, alone or with an alignment."""
    return Row(data, name, method, {**BUDGET, "pool_loss": "pseudo", **POOLED[data], **settings}, TRANSDUCTIVE)


def study(data: str) -> list[Row]:
    """Return the rows of the study of a data set on EfficientNet-Lite0."""
    ten, second = tuple(range(1, 11)), tuple(range(6, 11))
    alone = [
        Row(data, "frozen head", "s+t", {"trains": "head"}),
        *(supervised(data, name, name) for name in ("s+t", "means", "m", "so", "so+to+fo+zeta")),
    ]
    head = Row(data, "frozen head with the pool", "s+t", {"trains": "head"}, TRANSDUCTIVE)
    ours = [
        head,
        pseudo(data, "pseudo-labels"),
        *(pseudo(data, f"pseudo-labels + {name}", name) for name in ("means", "m", "so")),
    ]
    others = [published(data, name) for name in ("entropy", "im", "mcc", "fixmatch", "adamatch")]
    scatters = [
        pseudo(data, "pseudo-labels + so+to+fo+zeta", "so+to+fo+zeta"),
        pseudo(data, "pseudo-labels + so, unbiased", "so", estimator="unbiased"),
        pseudo(data, "pseudo-labels, no neighbours", neighbours=0),
    ]
    styled = [replace(row, name=f"{row.name}, two passes", settings={**row.settings, **STYLED}) for row in ours[:3]]
    found = [replace(row, splits=ten) for row in alone[:5]] + alone[5:]
    found += [replace(row, phase=2) for row in ours] + [replace(row, phase=3) for row in others]
    found += [replace(row, phase=4, pool=INDUCTIVE) for row in ours]
    found += [replace(row, phase=5, splits=second) for row in ours] + [replace(row, phase=6) for row in scatters]
    found += [replace(row, phase=7, splits=second, pool=INDUCTIVE) for row in ours]
    if data == "pacs":
        few = [*alone[:2], *ours, *styled[:2]]
        found += [replace(row, phase=8, shots=shots) for shots in (1, 10) for row in few]
    measured = styled if data == "pacs" else styled[:2]
    found += [replace(row, phase=9, splits=ten) for row in measured]
    found += [replace(row, phase=10, pool=INDUCTIVE) for row in measured]
    if data == "pacs":
        found += [replace(row, phase=11, splits=second, pool=INDUCTIVE) for row in styled[:2]]
    alone_twice = Row(data, "frozen head, two passes", "s+t", {"trains": "head", **STYLED}, phase=12)
    return [*found, replace(alone_twice, splits=ten) if data == "pacs" else alone_twice]


def other_network(data: str, backbone: str, weights: str | None) -> list[Row]:
    """Return the rows of the study of a data set on another network: five splits, and the same settings.

    It keeps fewer views of each image: what a larger trunk makes of them takes more room.
    """
    own = {"pool_views": 2, **({} if weights is None else {"weights": weights})}
    ours = [row for row in study(data) if row.shots == 3]
    chosen = {row.name: row for row in ours if row.phase <= 3}
    for row in (row for row in ours if row.phase == 9):  # heads first: two passes of a larger trunk take much room
        chosen[row.name] = replace(row, phase=5 if row.settings.get("trains") == "head" else 7)
    clipped = pseudo(data, "pseudo-labels, clipped", clip_norm=1.0)
    chosen[clipped.name] = replace(clipped, phase=8)
    if data == "office31":
        chosen |= {name: replace(supervised(data, name, name), phase=6) for name in FIRST_STUDY}
    rows = [
        replace(row, backbone=backbone, settings={**row.settings, **own}, splits=(1, 2, 3, 4, 5))
        for row in chosen.values()
    ]
    return rows + [replace(row, phase=4, pool=INDUCTIVE) for row in rows if row.phase == 2]


def development(data: str) -> list[Row]:
    """Return the rows by which settings were chosen; every one is compared on the same splits."""
    rows = [*_development_rows(data)]
    tasks = {
        "office31": [("W-A", (101,)), ("D-A", (101,)), ("A-W", (101,))],
        "pacs": [("photo-cartoon", (101, 102, 103)), ("cartoon-photo", (101,))],
    }
    return [
        replace(row, shifts=(shift,), splits=splits, pool=row.pool if row.pool == SUPERVISED else INDUCTIVE)
        for shift, splits in tasks[data]
        for row in rows
    ] + _style_rows(data)


def _style_rows(data: str) -> list[Row]:
    """Return the rows by which the choice between one pass and two was found."""
    heads = [
        Row(data, name, "s+t", {"trains": "head"}, pool, phase=13)
        for name, pool in (("frozen head", SUPERVISED), ("frozen head with the pool", INDUCTIVE))
    ]
    twice = [replace(row, name=f"{row.name}, two passes", settings={**row.settings, **STYLED}) for row in heads]
    splits = (101, 102, 103, 104, 105) if data == "pacs" else (101,)
    return [replace(row, shifts=(shift,), splits=splits) for shift in SHIFTS[data] for row in heads + twice]


def _development_rows(data: str) -> Sequence[Row]:
    taught = {"pool_loss": "pseudo", "lr": 0.01, "prior": "estimated", "teacher": 0.99}
    plain = {**taught, "neighbours": 0, "threshold": 0.9}
    voted = {**taught, "neighbours": 5, "threshold": 0.8}
    changes: dict[str, dict[str, Any]] = {
        "uniform": {"prior": "uniform"},
        "threshold 0.6": {"threshold": 0.6},
        "10 neighbours": {"neighbours": 10},
        "rate 0.02": {"lr": 0.02},
        "600 steps": {"steps": 600},
        "information": {"pool_loss": "pseudo+im"},
    }
    return [
        Row(data, "frozen head", "s+t", {"trains": "head"}),
        *(
            supervised(data, f"{name}, rate {lr}", name, lr=lr)
            for name in ("s+t", "m", "so")
            for lr in (0.001, 0.003, 0.01)
        ),
        Row(data, "frozen head with the pool", "s+t", {"trains": "head"}, INDUCTIVE),
        pseudo(data, "pseudo-labels, no neighbours", **plain),
        pseudo(data, "pseudo-labels", **voted),
        *(pseudo(data, f"pseudo-labels, {name}", **{**voted, **change}) for name, change in changes.items()),
        *(pseudo(data, f"pseudo-labels + {name}", name, **voted) for name in ("m", "means", "so")),
        pseudo(data, "pseudo-labels + m, uniform", "m", **{**voted, "prior": "uniform"}),
        *(
            pseudo(data, f"adamatch + {name}, {count} neighbours, threshold {least}", name, **own)
            for name in ("s+t", "m", "means")
            for count, least in ((0, 0.9), (5, 0.9), (5, 0.8))
            for own in [{"pool_loss": "adamatch", "lr": 0.01, "neighbours": count, "threshold": least}]
            if (name, count) != ("s+t", 0)
        ),
        *(
            pseudo(data, f"pseudo-labels of the study, {name}", **change)
            for name, change in {
                "clipped at 1": {"clip_norm": 1.0},
                "clipped at 5": {"clip_norm": 5.0},
                "600 steps": {"steps": 600},
                "1200 steps": {"steps": 1200},
                "600 steps, rate 0.003": {"steps": 600, "lr": 0.003},
                "information": {"pool_loss": "pseudo+im"},
            }.items()
        ),
        pseudo(data, "pseudo-labels, uniform, 600 steps", **{**voted, "prior": "uniform", "steps": 600}),
        pseudo(data, "pseudo-labels, uniform, teacher 0.95", **{**voted, "prior": "uniform", "teacher": 0.95}),
        pseudo(data, "pseudo-labels, uniform, no neighbours", **{**plain, "prior": "uniform"}),
        *(
            replace(published(data, name), name=f"{name}, rate {lr}", settings={**BUDGET, "lr": lr})
            for name in ("entropy", "im", "mcc", "fixmatch", "adamatch")
            for lr in (0.003, 0.01)
            if lr == 0.01 or "match" not in name
        ),
    ]
