#!/usr/bin/env python3
"""images/s of one training step of resnet18_cifar under PyTorch's DistributedDataParallel, for bench/peers/ddp: gloo, two
processes of one thread, each bound to a core of its own; forward, cross-entropy, backward, SGD with momentum; batch 128
of random 32x32 images, 64 a process, channels-last. The time of a step is that of the slower process.

usage: ddp_step.py [steps]
"""
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from torch_models import resnet18_cifar  # noqa: E402

BATCH, WARM_UP, WORLD = 128, 3, 2


def run(rank, folder, steps):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    net = resnet18_cifar().train().to(memory_format=torch.channels_last)
    model = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    images = torch.randn(BATCH // WORLD, 3, 32, 32).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (BATCH // WORLD,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    times = []
    for i in range(WARM_UP + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if i >= WARM_UP:
            times.append(time.perf_counter() - start)
    slowest = torch.tensor(times, dtype=torch.float64)
    torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
    if rank == 0:
        print(f"images/s: median {BATCH / statistics.median(slowest.tolist()):.1f}, PyTorch {torch.__version__}")
    torch.distributed.destroy_process_group()


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (folder, steps), nprocs=WORLD)


if __name__ == "__main__":
    main()
