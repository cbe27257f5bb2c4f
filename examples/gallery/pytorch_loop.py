"""
The loss in a training loop of your own
=======================================

`sohot.ScatterAlignment` is a loss like any other in PyTorch: it takes the features and
labels of a source batch and of a target batch, and returns a number to add to the
cross-entropy. Here a small network learns digits from 500 printed ones and three
handwritten ones per class, once without alignment and once with it.
"""

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import cross_entropy

from sohot import ScatterAlignment
from sohot.data import font_digits, handwritten_digits

source_x, source_y = font_digits(n_per_class=50, seed=0)
images, labels = handwritten_digits()
shots = torch.cat([(labels == digit).nonzero()[:3, 0] for digit in range(10)])
rest = torch.ones(len(labels), dtype=torch.bool).index_fill(0, shots, False)
target_x, target_y, test_x, test_y = (
    images[shots],
    labels[shots],
    images[rest],
    labels[rest],
)

# %%
# The loop
# --------
# ``feature_scale="initial"`` divides the features by their spread in the first batch,
# so that one σ suits every network. Class means count by ``sigma2``, scatters of order
# 2 (covariances) by ``sigma1``.


def train(weight: float) -> tuple[torch.nn.Module, list[float]]:
    """Train on both domains; return the network and the alignment loss of each step."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(256, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 32),
    )
    classifier = torch.nn.Linear(32, 10)
    align = ScatterAlignment(
        num_classes=10, sigma1=0.1, sigma2=1.0, feature_scale="initial"
    )
    optimizer = torch.optim.AdamW(
        [*network.parameters(), *classifier.parameters()], lr=3e-3
    )
    history = []
    for _ in range(150):
        batch = torch.randint(len(source_y), (100,))
        source, target = network(source_x[batch]), network(target_x)
        distance = align(source, source_y[batch], target, target_y)
        loss = cross_entropy(
            classifier(torch.cat([source, target])),
            torch.cat([source_y[batch], target_y]),
        )
        optimizer.zero_grad()
        (loss + weight * distance).backward()
        optimizer.step()
        history.append(distance.item())
    return torch.nn.Sequential(network, classifier).eval(), history


# %%
# What it does
# ------------

models = {"without alignment": train(0.0), "with alignment": train(0.1)}
for name, (model, _) in models.items():
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean()
    print(f"{name}: {right:.1%} of {len(test_y)} unseen digits right")

# %%
# Without the loss the domains drift apart as the features grow. With it, they stay
# together:

figure, (left, *panels) = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for name, (_, history) in models.items():
    left.semilogy(history, label=name)
left.set(title="distance between the domains", xlabel="step")
left.legend()
for axes, (name, (model, _)) in zip(panels, models.items(), strict=True):
    with torch.no_grad():
        features = [model[0](source_x), model[0](test_x)]
    axis = torch.pca_lowrank(torch.cat(features), q=2, niter=4)[2]
    for rows, digits, marker in zip(
        features, (source_y, test_y), ("o", "x"), strict=True
    ):
        few = digits < 4
        axes.scatter(
            *(rows[few] @ axis).T,
            c=digits[few],
            cmap="viridis",
            marker=marker,
            s=12,
            alpha=0.5,
        )
    axes.set(title=f"0 to 3 {name}: printed o, handwritten ×", xticks=[], yticks=[])
    axes.title.set_fontsize(10)
