#!/usr/bin/python3
"""Makes tests/golden/models from PyTorch (1.13, Debian's python3-torch):

  resnet18.keys               names, types and shapes of torchvision's state_dict, in its order
  NAME.weights.safetensors    initial weights of a small net, with running statistics that are not the initial ones
  NAME.safetensors            images, labels; logits (evaluation mode, all images); loss and grad.PARAMETER (training
                              mode, first batch), computed in float64; fp32_error.PARAMETER, the distance of
                              PyTorch's own float32 gradient from that; after.TENSOR, 20 steps of SGD later

The nets are small so that the files are: lenet5 on 8x8, resnet18_cifar with a width of 4 instead of 64. In a net this
narrow one kink (torch_models.py) on the wrong side moves the training visibly; so the seed is the first one for which
none lies within MARGIN in the batch of the gradients, nor within STEP_MARGIN in any of the 20 steps.
"""

import copy
import pathlib

import torch
from torch import nn

import safetensors_file
import torch_models

FOLDER = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "models"
N_IMAGES, BATCH, N_STEPS = 32, 8, 20
MARGIN, STEP_MARGIN = 2e-5, 5e-6


def make_case(build, size, seed):
    torch.manual_seed(seed)
    net = build()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.2)
            nn.init.normal_(m.running_mean, 0, 0.2)
            nn.init.uniform_(m.running_var, 0.5, 1.5)
    return net, torch.randn(N_IMAGES, *size), torch.randint(0, 10, (N_IMAGES,))


def gradients(net, images, labels):
    net.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    return loss, {name: p.grad.clone() for name, p in net.named_parameters()}


def train(net, images, labels, go_on=lambda step, images: True):
    """The state after N_STEPS; None when go_on, asked before each of them, said no."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    for step in range(N_STEPS):
        at = step * BATCH % N_IMAGES
        if not go_on(step, images[at : at + BATCH]):
            return None
        gradients(net, images[at : at + BATCH], labels[at : at + BATCH])
        optimizer.step()
    return net.state_dict()


def find_case(build, size):
    for seed in range(100000):
        net, images, labels = make_case(build, size, seed)
        probe = copy.deepcopy(net).double()

        def is_clear(step, batch):
            return torch_models.kink_distance(probe, batch) > (MARGIN if step == 0 else STEP_MARGIN)

        if train(probe, images.double(), labels, is_clear):
            return net, images, labels, seed
    raise SystemExit("no seed found: the margins are too large")


def distance(a, b):
    """||a - b|| / ||b|| over all tensors of b together."""
    square = sum(((a[k].double() - b[k]) ** 2).sum() for k in b)
    return (square / sum((b[k] ** 2).sum() for k in b)).sqrt().item()


def dump(name, build, size):
    net, images, labels, seed = find_case(build, size)
    exact = copy.deepcopy(net).double()
    out = {"images": images, "labels": labels}
    with torch.no_grad():
        out["logits"] = copy.deepcopy(exact).eval()(images.double())
    first = images[:BATCH], labels[:BATCH]
    out["loss"], exact_grad = gradients(copy.deepcopy(exact), first[0].double(), first[1])
    _, grad = gradients(copy.deepcopy(net), *first)
    for k, b in exact_grad.items():
        out["grad." + k] = b
        out["fp32_error." + k] = (grad[k].double() - b).norm()
    safetensors_file.save(FOLDER / f"{name}.weights.safetensors", net.state_dict())

    exact_after = {k: t for k, t in train(exact, images.double(), labels).items() if t.is_floating_point()}
    after = train(net, images, labels)
    out.update({"after." + k: t.float() for k, t in exact_after.items()})
    safetensors_file.save(FOLDER / f"{name}.safetensors", out)
    print(f"{name}: seed {seed}; PyTorch's float32 against float64: gradients {distance(grad, exact_grad):.1e}, "
          f"weights after {N_STEPS} steps {distance(after, exact_after):.1e}")


def main():
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    types = {torch.float32: "f32", torch.int64: "i64"}
    with open(FOLDER / "resnet18.keys", "w") as f:
        for name, t in torch_models.resnet18().state_dict().items():
            f.write(f"{name} {types[t.dtype]}[{','.join(map(str, t.shape))}]\n")
    dump("lenet5", lambda: torch_models.LeNet5(1, 8, 10), (1, 8, 8))
    dump("resnet18_cifar", lambda: torch_models.resnet18_cifar(width=4), (3, 16, 16))


if __name__ == "__main__":
    main()
