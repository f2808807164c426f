"""PyTorch's own DistributedDataParallel and the semantics of nn.DataParallel, to hold `ddp` and `dp` against.

Convoy's shard s of S holds the images floor(n s / S) to floor(n (s + 1) / S) - 1 of a batch of n; torch.chunk makes
all chunks but the last of the size ceil(n / S). The two agree where S divides n."""

import copy
import os
import tempfile

import torch
import torch.distributed
import torch.multiprocessing
from torch import nn


def shards(n, count):
    """Convoy's split of n images, as sizes."""
    bounds = [n * s // count for s in range(count + 1)]
    return [b - a for a, b in zip(bounds, bounds[1:])]


def _rank(rank, world, folder, net, images, labels, batch_size, hyper):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    net = copy.deepcopy(net)  # what came with the call lies in memory that all ranks share
    # buffers stay each rank's own: DDP would overwrite all with rank 0's, and nobody could take their mean
    model = nn.parallel.DistributedDataParallel(net, broadcast_buffers=False)
    lr, momentum, weight_decay = hyper
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
    for x, y in zip(images.split(batch_size), labels.split(batch_size)):
        mine = slice(len(x) * rank // world, len(x) * (rank + 1) // world)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[mine]), y[mine]).backward()
        optimizer.step()
    torch.save(net.state_dict(), os.path.join(folder, f"rank{rank}"))
    torch.distributed.destroy_process_group()


def train(net, images, labels, batch_size, world, hyper):
    """The state_dict of each rank after one pass over the images, in batches that `world` processes share.
    hyper: learning rate, momentum, weight decay. DDP takes the mean of the ranks' means: `world` must divide the batch.
    """
    assert batch_size % world == 0 and len(images) % batch_size == 0
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (world, folder, net, images, labels, batch_size, hyper), nprocs=world)
        return [torch.load(os.path.join(folder, f"rank{r}")) for r in range(world)]


def mean_state(states):
    """Parameters, which must be equal on all ranks, and the mean of their running statistics; counters left out."""
    out = {}
    for name, first in states[0].items():
        if not first.is_floating_point():
            continue
        if ".running_" not in name:
            assert all(torch.equal(first, s[name]) for s in states), f"the ranks' {name} differ"
        out[name] = sum(s[name].double() for s in states) / len(states)
    return out


def data_parallel(net, images, labels, sizes):
    """One training step of nn.DataParallel on one device: each chunk, of the given size, goes through a replica, so
    batch-norm sees chunks; outputs are gathered; the loss is the mean over all; gradients add up in the one master.
    Returns the gathered outputs, the loss and the gradients."""
    net.zero_grad()
    output = torch.cat([net(chunk) for chunk in images.split(sizes)])
    loss = nn.functional.cross_entropy(output, labels)
    loss.backward()
    return output.detach(), loss.detach(), {name: p.grad.clone() for name, p in net.named_parameters()}
