#!/usr/bin/env python3
"""images/s of one training step of a torchvision model in PyTorch on a GPU, for bench/peers/gpu: forward,
cross-entropy, backward, SGD with momentum, random images that stay on the GPU, channels-last, fp32 without TF32.

usage: gpu_step.py MODEL BATCH SIDE STEPS eager|compile
"""
import statistics
import sys
import time

import torch
import torchvision

WARM_UP = 5


def main():
    name, batch, side, steps, mode = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = torchvision.models.get_model(name).cuda().train().to(memory_format=torch.channels_last)
    if mode == "compile":
        model = torch.compile(model)
    images = torch.randn(batch, 3, side, side, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    times = []
    for i in range(WARM_UP + steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append(time.perf_counter() - start)
    print(f"PyTorch {torch.__version__}, {mode}, {torch.cuda.get_device_name()}, "
          f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB")
    print(f"images/s: median {batch / statistics.median(times):.1f}, best {batch / min(times):.1f}")


main()
