#!/usr/bin/env python3
"""One training step in PyTorch on the CPU, for bench/peers/compare: forward, cross-entropy, backward, SGD with momentum, on
random images, channels-last, as many threads as cores. Prints JSON.

usage: step.py MODEL CxHxW CLASSES BATCH STEPS eager|compile fp32|bf16
"""
import contextlib
import json
import os
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))

WARM_UP = 3


def make(name, classes):
    import torch_models
    if hasattr(torch_models, name):
        return getattr(torch_models, name)(num_classes=classes)
    import torchvision
    return torchvision.models.get_model(name, num_classes=classes)


def peak_memory():
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main():
    name, size, classes, batch, steps, mode, precision = sys.argv[1:]
    channels, height, width = map(int, size.split("x"))
    batch, steps, classes = int(batch), int(steps), int(classes)
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = make(name, classes).train().to(memory_format=torch.channels_last)
    forward = torch.compile(model) if mode == "compile" else model
    images = torch.randn(batch, channels, height, width).to(memory_format=torch.channels_last)
    labels = torch.randint(0, classes, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    times = []
    for i in range(WARM_UP + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bf16" else contextlib.nullcontext():
            loss = torch.nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()
        if i >= WARM_UP:
            times.append(time.perf_counter() - start)
    print(json.dumps({"images_per_s": batch / statistics.median(times), "best": batch / min(times), "shards": 1,
                      "threads_per_device": threads, "peak_memory_bytes": peak_memory(), "torch": torch.__version__}))


main()
