#!/usr/bin/env python3
"""One training step of a torchvision model in PyTorch on a GPU, for bench/peers/gpu: forward, cross-entropy, backward, SGD
with momentum, random images that stay on the GPU, channels-last. Prints JSON.

usage: gpu_step.py MODEL BATCH SIDE STEPS eager|compile bf16|fp32
"""
import contextlib
import json
import statistics
import sys
import time

import torch
import torchvision

WARM_UP = 5


def main():
    name, batch, side, steps, mode, precision = sys.argv[1], *map(int, sys.argv[2:5]), *sys.argv[5:]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = torchvision.models.get_model(name).cuda().train().to(memory_format=torch.channels_last)
    forward = torch.compile(model) if mode == "compile" else model
    images = torch.randn(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    times = []
    for i in range(WARM_UP + steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16) if precision == "bf16" else contextlib.nullcontext():
            loss = torch.nn.functional.cross_entropy(forward(images), labels)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append(time.perf_counter() - start)
    print(json.dumps({"images_per_s": batch / statistics.median(times), "memory_bytes": torch.cuda.max_memory_allocated(),
                      "torch": torch.__version__, "device": torch.cuda.get_device_name()}, indent=1))


main()
