"""CPU time of each recommended network for an image, as a multiple of lite0's; weights do not matter for that.

python studies/networks/cost.py
"""

import time

import torch

from sohot.networks import RECOMMENDED, create_backbone
from sohot.networks.inference import run_batches

IMAGES, ROUNDS = 8, 6


def seconds(name: str) -> float:
    """Return the CPU seconds of one thread for one image, as `sohot features` computes: the least of some rounds."""
    backbone = create_backbone(name, pretrained=False)
    images = torch.randn(IMAGES, 3, backbone.input.size, backbone.input.size)
    times = []
    for _ in range(ROUNDS):
        before = time.process_time()
        list(run_batches(backbone, [images, images], torch.device("cpu")))
        times.append(time.process_time() - before)
    return min(times) / (2 * IMAGES)


if __name__ == "__main__":
    torch.set_num_threads(1)
    first = seconds("lite0")
    for network in RECOMMENDED:
        spent = seconds(network.name)
        print(f"{network.name:15} {1000 * spent:6.0f} ms {spent / first:5.1f}")
