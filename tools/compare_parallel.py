#!/usr/bin/python3
"""Holds `convoy train --strategy ddp` against PyTorch's DistributedDataParallel (gloo, a process for each rank) and
`--strategy dp` against the semantics of nn.DataParallel, live, on fresh random weights and images:

  ddp, weights      20 steps on 2 devices at lr 0.02, momentum 0.9, weight decay 5e-4: all parameters together
  ddp, statistics   running means and variances, against the mean of the ranks' own
  dp, logits        of a batch that the devices do not divide: `convoy predict`, in the batch's order
  dp, gradients     one SGD step at lr 1: weights before minus after, batch-norm in chunks of torch.chunk; and of a
                    batch that does not divide, in Convoy's chunks, which differ from torch.chunk's by an image

The truth is PyTorch in float64; its own float32 error stands beside, and says how much is chance. Images are taken so
that no kink (torch_models.py) is near, in any of the steps: on the wrong side of one, a correct program ends some
percent off. That asks for few values, hence the small images. Prints a table of what is asked and what was measured;
exits with 1 when something misses.

  tools/compare_parallel.py [--convoy build/convoy] [--model resnet20] [--batch-size 16] [--seed N] [-- FLAGS]
"""

import argparse
import copy
import pathlib
import random
import sys
import tempfile

import torch

import torch_ddp
import torch_models
from compare_torch import CLASSES, N_STEPS, Convoy, Table, distance, make_images, make_net, parameters

KINK_MARGIN = 5e-6
HYPER = 0.02, 0.9, 5e-4


def flags(strategy, n):
    return ["--strategy", strategy, "--devices", f"cpu:0-{n - 1}", "--shards", n, "--threads-per-device", 1]


def without(state, what):
    return {k: t for k, t in state.items() if what not in k}


def compare_ddp(table, convoy, net, images, labels, batch_size, n):
    exact = torch_ddp.mean_state(torch_ddp.train(copy.deepcopy(net).double(), images.double(), labels, batch_size, n,
                                                 HYPER))
    own = torch_ddp.mean_state(torch_ddp.train(copy.deepcopy(net), images, labels, batch_size, n, HYPER))
    after = convoy.train(images, labels, batch_size, *HYPER, flags("ddp", n))
    for what, part in ("weights", lambda s: without(s, ".running_")), (
            "statistics", lambda s: {k: t for k, t in s.items() if ".running_" in k}):
        table.row(f"ddp on {n}: {what} after {N_STEPS} steps, all together", 1e-3, distance(after, part(exact)),
                  distance(own, part(exact)))


def is_clear(net, images, sizes):
    return all(torch_models.kink_distance(net, chunk) > KINK_MARGIN for chunk in images.split(sizes))


def clear_images(net, n, size, sizes):
    """Images in whose chunks no kink is near; the last class is among their labels."""
    while True:
        images, labels = make_images(n, size)
        labels[-1] = CLASSES - 1
        if is_clear(net, images, sizes):
            return images, labels


def clear_training(net, batch_size, size, n):
    """Images and labels of N_STEPS batches. Each batch is drawn until it is clear of the net as it is by then; the net
    goes on in this process, where equal shares give DDP the gradient of nn.DataParallel."""
    sizes = torch_ddp.shards(batch_size, n)
    net = copy.deepcopy(net).double()
    lr, momentum, weight_decay = HYPER
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
    batches = []
    for _ in range(N_STEPS):
        batches.append(clear_images(net, batch_size, size, sizes))
        torch_ddp.data_parallel(net, batches[-1][0].double(), batches[-1][1], sizes)
        optimizer.step()
    return [torch.cat(tensors) for tensors in zip(*batches)]


def compare_dp_logits(table, convoy, net, images, n):
    with torch.no_grad():
        exact = {"": copy.deepcopy(net).double().eval()(images.double())}
        own = {"": copy.deepcopy(net).eval()(images)}
    got = {"": convoy.predict(images, flags("dp", n))}
    table.row(f"dp on {n}: logits of {len(images)} images", 1e-4, distance(got, exact), distance(own, exact))


def compare_dp_gradients(table, convoy, net, size, n_images, n):
    """Distance in units of each parameter's allowance, as compare_torch.py does for one device."""
    sizes = torch_ddp.shards(n_images, n)
    images, labels = clear_images(net, n_images, size, sizes)
    if n_images % n == 0:
        assert sizes == [len(c) for c in images.chunk(n)]
    before = parameters(net)
    _, _, exact = torch_ddp.data_parallel(copy.deepcopy(net).double(), images.double(), labels, sizes)
    _, _, own = torch_ddp.data_parallel(copy.deepcopy(net), images, labels, sizes)
    after = convoy.train(images, labels, n_images, 1, 0, 0, flags("dp", n))
    total = sum((g ** 2).sum() for g in exact.values()).sqrt()
    worst = ("", 0.0, 0.0)
    for k, b in exact.items():
        error, own_error = (before[k] - after[k].double() - b).norm(), (own[k].double() - b).norm()
        allowed = max(1e-4 * b.norm(), 3 * own_error) + 1e-6 * total
        if not (error / allowed).item() <= worst[1]:
            worst = (k, (error / allowed).item(), (own_error / allowed).item())
    table.row(f"dp on {n}: gradients of {n_images}, worst / allowed: {worst[0]}", 1.0, worst[1], worst[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default=str(pathlib.Path(__file__).parent.parent / "build" / "convoy"))
    parser.add_argument("--model", default="resnet20", choices=["resnet18_cifar", "resnet20"])
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--size", type=int, default=8, help="height and width of the images")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("flags", nargs="*", help="after --: more flags for convoy")
    options = parser.parse_args()
    print(f"{options.model}, batch {options.batch_size} of 3x{options.size}x{options.size}, seed {options.seed}, "
          f"PyTorch {torch.__version__}")

    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    net = make_net(options.model)
    images, labels = clear_training(net, options.batch_size, options.size, 2)
    with tempfile.TemporaryDirectory() as folder:
        convoy, table = Convoy(options, pathlib.Path(folder), net), Table()
        compare_ddp(table, convoy, net, images, labels, options.batch_size, 2)
        compare_dp_logits(table, convoy, net, images[:10], 4)
        compare_dp_gradients(table, convoy, net, options.size, 4, 2)
        compare_dp_gradients(table, convoy, net, options.size, 5, 2)
    sys.exit(not table.is_good)


if __name__ == "__main__":
    main()
