#!/usr/bin/env python3
"""Writes PyTorch's .pth files for the tests: the seeds of tests/fuzz/pth_fuzz.c, which src/graph/weights_pth_test.c
reads too, and lenet5's golden weights for tests/cli/pth.sh.

    tools/make_pth_files.py      (needs PyTorch 2; made once and committed)
"""
import argparse
import pathlib
from collections import OrderedDict

import torch

import safetensors_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "tests/fuzz/corpus/pth"


def count(*shape, dtype=torch.float32):
    n = 1
    for size in shape:
        n *= size
    return torch.arange(n, dtype=dtype).reshape(*shape)


def state():
    shared = count(12)
    return OrderedDict([
        ("conv.weight", count(2, 3, 2, 2).to(memory_format=torch.channels_last)),
        ("conv.bias", shared[2:6]),
        ("fc.weight", count(3, 4).t()),
        ("bn.num_batches_tracked", torch.tensor(7)),
        ("empty", torch.zeros(0, 3)),
    ])


def save(value, name, **options):
    torch.save(value, SEEDS / name, **options)


def seeds():
    SEEDS.mkdir(parents=True, exist_ok=True)
    save(state(), "layouts")
    save({t: count(3).to(getattr(torch, t)) for t in ("float16", "bfloat16", "float64", "int32", "uint8", "bool")},
         "types")
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    save({"model": state(), "optimizer": optimizer.state_dict(), "epoch": 3, "lr": 0.5, "done": [True, None],
          "args": argparse.Namespace(lr=0.1, name="x", big=1 << 40)}, "torchvision")
    save({"state_dict": state(), "arch": "resnet18", "best": -1}, "timm")
    save({k: torch.nn.Parameter(v) for k, v in {"w": count(2)}.items()}, "parameter")
    save(state(), "protocol4", pickle_protocol=4)
    save(state(), "old", _use_new_zipfile_serialization=False)
    save({"w": count(1).expand(3)}, "expanded")
    save({"w": count(2), "evil": pathlib.PurePosixPath("x")}, "path")
    dense = "norm.1.weight", "conv.2.weight", "norm.3.weight", "norm2.bias"
    save({f"denseblock1.denselayer12.{k}": count(1) for k in dense},
         "densenet")
    save({"w": 3}, "no_tensor")
    save(count(2), "no_dict")


def lenet5():
    weights = safetensors_file.load(ROOT / "tests/golden/models/lenet5.weights.safetensors")
    for name in ("conv1.weight", "conv2.weight"):
        weights[name] = weights[name].to(memory_format=torch.channels_last)
    torch.save({"model": weights, "epoch": 1}, ROOT / "tests/data/lenet5.pth")


if __name__ == "__main__":
    seeds()
    lenet5()
