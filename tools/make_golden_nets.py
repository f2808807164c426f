#!/usr/bin/python3
"""Makes tests/golden/models/NAME.net.safetensors from torchvision's models in float64, on small images:

  draw, labels         the batch: its images are the numbers of the name "images.DRAW"
  bias.TENSOR          biases, which keep the net away from kinks (torch_kinks.py)
  logits               in evaluation mode; loss, in training mode, with Convoy's own dropout
  grad.PARAMETER       of the gradient: its norm, the distance of PyTorch's own float32 gradient, how many numbers it
                       has, and its products with PROBES vectors of signs

A whole gradient would fill megabytes. For a difference d and vectors r of random signs the mean of (d . r)^2 is
||d||^2, so a few products tell how far another gradient is. Weights and signs are functions of a name and a place
(numbers below), which tests/net_golden_test.c computes too.

  tools/make_golden_nets.py [--convoy build/convoy]    (asks Convoy for the numbers of its dropouts)
"""

import argparse
import copy
import pathlib

import numpy as np
import torch
from torch import nn

import compare_torch
import safetensors_file
import torch_kinks
import torch_models

FOLDER = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "models"
NETS = "resnet18", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0"
SIZE, BATCH, PROBES, MARGIN = 64, 4, 4, 1e-5


def mix(x):
    """splitmix64 of an array."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_bits(name, n):
    """64 of them for each place of the tensor: splitmix64(FNV-1a(name) + place)."""
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = (start ^ byte) * 0x100000001B3 & 2**64 - 1
    with np.errstate(over="ignore"):
        return mix(np.uint64(start) + np.arange(n, dtype=np.uint64))


def numbers(name, n):
    """In [-1, 1) by 24 bits."""
    return ((random_bits(name, n) >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)


def number_tensor(name, t):
    """Numbers times a scale in float32: of a matrix sqrt(6 / fan-in)."""
    x = numbers(name, t.numel())
    if t.dim() > 1:
        x *= np.sqrt(np.float32(6) / np.float32(t[0].numel()))
    elif name.endswith(".running_mean") or name.endswith(".bias"):
        x *= np.float32(0.25)
    else:  # the factors and variances of batch norms
        x = np.float32(1) + x * np.float32(0.25)
    return torch.from_numpy(x).reshape(t.shape)


def products(name, g):
    bits = random_bits(name, g.numel())
    signs = [1 - 2 * (bits >> np.uint64(k) & np.uint64(1)).astype(np.float64) for k in range(PROBES)]
    return [(g.flatten() * torch.from_numpy(s)).sum() for s in signs]


def gradients(net, images, labels):
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    return loss, {name: p.grad.double() for name, p in net.named_parameters()}


def dump(options, name):
    torch.manual_seed(0)
    net = compare_torch.build_net(name)
    net.load_state_dict({k: number_tensor(k, t) if t.is_floating_point() else t for k, t in net.state_dict().items()})
    torch_models.replace_dropouts(net, compare_torch.Convoy(options, name, FOLDER).dropouts(SIZE))
    labels, kink, draw = torch.arange(BATCH) * 3 % compare_torch.CLASSES, 0, -1
    while kink < MARGIN:  # the inputs of max-pools cannot be moved apart
        draw, clear = draw + 1, copy.deepcopy(net)
        images = torch.from_numpy(numbers(f"images.{draw}", BATCH * 3 * SIZE**2)).reshape(BATCH, 3, SIZE, SIZE)
        torch_kinks.clear_kinks(clear, images)
        kink = torch_models.kink_distance(clear, images)
    exact = copy.deepcopy(clear).double()
    out = {"draw": torch.tensor(draw), "labels": labels}
    out.update({f"bias.{k}": t for k, t in clear.state_dict().items() if k.endswith(".bias")})
    with torch.no_grad():
        out["logits"] = copy.deepcopy(exact).eval()(images.double())
    _, own = gradients(clear, images, labels)
    out["loss"], truth = gradients(exact, images.double(), labels)
    for k, g in truth.items():
        row = g.norm(), (own[k] - g).norm(), g.numel(), *products(k, g)
        out["grad." + k] = torch.tensor([float(x) for x in row], dtype=torch.float64)
    safetensors_file.save(FOLDER / f"{name}.net.safetensors", out)
    print(f"{name}: draw {draw}, nearest kink {kink:.1e}, loss {out['loss'].item():.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default=str(pathlib.Path(__file__).parent.parent / "build" / "convoy"))
    parser.set_defaults(flags=[])
    options = parser.parse_args()
    for name in NETS:
        dump(options, name)


if __name__ == "__main__":
    main()
