#!/usr/bin/python3
"""Makes what the strategies are held against, beside the files of make_golden_models.py in tests/golden/models and for
the same weights (NAME.weights.safetensors), from PyTorch (1.13, Debian's python3-torch):

  resnet18_cifar.ddp.safetensors   images, labels; after.TENSOR: 20 steps of SGD under DistributedDataParallel, two gloo
                                   processes that share batches of 8; running statistics: the mean of both ranks' own
  NAME.dp.safetensors              images, labels; loss and grad.PARAMETER of a step of nn.DataParallel: of
                                   resnet18_cifar 8 images on 2 devices, of lenet5 10 images on 4, in torch.chunk's 3,
                                   3, 3 and 1 (it has no batch-norm: the chunks do not matter); fp32_error.PARAMETER,
                                   as in make_golden_models.py

All are computed in float64. Images are the first for which no kink is near (torch_models.py).
"""

import copy

import torch

import safetensors_file
import torch_ddp
import torch_models
from make_golden_models import BATCH, FOLDER, MARGIN, N_IMAGES, N_STEPS, STEP_MARGIN, distance

WORLD = 2
HYPER = 0.02, 0.9, 5e-4


def load(name, net):
    net.load_state_dict(safetensors_file.load(FOLDER / f"{name}.weights.safetensors"))
    return net


def is_clear(net, images, sizes, margin):
    return all(torch_models.kink_distance(net, chunk) > margin for chunk in images.split(sizes))


def cycle(images):
    """N_STEPS batches, going round."""
    return torch.cat([images[step * BATCH % N_IMAGES :][:BATCH] for step in range(N_STEPS)])


def has_clear_training(net, images, labels):
    """Runs DDP's steps in one process: DDP's gradient is that of nn.DataParallel when the shares are equal."""
    sizes = torch_ddp.shards(BATCH, WORLD)
    net = copy.deepcopy(net).double()
    lr, momentum, weight_decay = HYPER
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
    for x, y in zip(cycle(images).double().split(BATCH), cycle(labels).split(BATCH)):
        if not is_clear(net, x, sizes, STEP_MARGIN):
            return False
        torch_ddp.data_parallel(net, x, y, sizes)
        optimizer.step()
    return True


def draw(good, n, size):
    for seed in range(100000):
        torch.manual_seed(seed)
        images, labels = torch.randn(n, *size), torch.randint(0, 10, (n,))
        if good(images, labels):
            return images, labels, seed
    raise SystemExit("no seed found: the margins are too large")


def dump_ddp(name, net, size):
    images, labels, seed = draw(lambda x, y: has_clear_training(net, x, y), N_IMAGES, size)
    steps = cycle(images), cycle(labels)
    exact = torch_ddp.mean_state(torch_ddp.train(copy.deepcopy(net).double(), steps[0].double(), steps[1], BATCH,
                                                 WORLD, HYPER))
    own = torch_ddp.mean_state(torch_ddp.train(copy.deepcopy(net), *steps, BATCH, WORLD, HYPER))
    out = {"images": images, "labels": labels, **{"after." + k: t.float() for k, t in exact.items()}}
    safetensors_file.save(FOLDER / f"{name}.ddp.safetensors", out)
    print(f"{name}.ddp: seed {seed}; PyTorch's float32 against float64: weights after {N_STEPS} steps "
          f"{distance(own, exact):.1e}")


def dump_dp(name, net, size, n, devices):
    sizes = [len(c) for c in torch.arange(n).chunk(devices)]
    images, labels, seed = draw(lambda x, y: is_clear(net, x, sizes, MARGIN), n, size)
    _, loss, exact = torch_ddp.data_parallel(copy.deepcopy(net).double(), images.double(), labels, sizes)
    _, _, own = torch_ddp.data_parallel(copy.deepcopy(net), images, labels, sizes)
    out = {"images": images, "labels": labels, "loss": loss}
    for k, b in exact.items():
        out["grad." + k] = b
        out["fp32_error." + k] = (own[k].double() - b).norm()
    safetensors_file.save(FOLDER / f"{name}.dp.safetensors", out)
    print(f"{name}.dp: seed {seed}, chunks {sizes}; PyTorch's float32 against float64: gradients "
          f"{distance(own, exact):.1e}")


def main():
    torch.set_num_threads(1)
    resnet = load("resnet18_cifar", torch_models.resnet18_cifar(width=4))
    lenet = load("lenet5", torch_models.LeNet5(1, 8, 10))
    dump_ddp("resnet18_cifar", resnet, (3, 16, 16))
    dump_dp("resnet18_cifar", resnet, (3, 16, 16), BATCH, 2)
    dump_dp("lenet5", lenet, (1, 8, 8), 10, 4)


if __name__ == "__main__":  # the processes of DDP import this file
    main()
