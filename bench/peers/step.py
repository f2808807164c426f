#!/usr/bin/env python3
"""images/s of one training step of resnet18_cifar in PyTorch, for bench/peers/compare: forward, cross-entropy, backward,
SGD with momentum, batch 128 of random 32x32 images, channels-last, as many threads as cores.

usage: step.py [steps]
"""
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
from torch_models import resnet18_cifar  # noqa: E402

BATCH, WARM_UP = 128, 2


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    model = resnet18_cifar().train().to(memory_format=torch.channels_last)
    images = torch.randn(BATCH, 3, 32, 32).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (BATCH,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    times = []
    for i in range(WARM_UP + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if i >= WARM_UP:
            times.append(time.perf_counter() - start)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads: median "
          f"{BATCH / statistics.median(times):.1f} images/s, best {BATCH / min(times):.1f}")


main()
