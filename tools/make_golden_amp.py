#!/usr/bin/python3
"""Makes, from PyTorch with torch.autocast(dtype=bfloat16) on the CPU,

  tests/golden/models/NAME.amp.safetensors    images, labels; logits (evaluation mode, all images); loss and
                           grad.PARAMETER (training mode, first batch); float_error, the distance of all those gradients
                           from float64's, relative to them
  tests/golden/models/block.weights.safetensors

for lenet5, with the weights and images of make_golden_models.py, and for `block`, a residual block whose batch-norm has
many values a channel. Of deep, narrow nets the gradients in bfloat16 are noise: those of the narrow ResNet-18 there are
25 % away from float64's. Here both sides round at the same places, nearly, and must agree much better than that."""

import copy

import torch
from torch import nn

import safetensors_file
import torch_models
from make_golden_models import BATCH, FOLDER, distance, gradients, make_case


def amp_gradients(net, images, labels):
    net.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(images)
    loss = nn.functional.cross_entropy(logits.float(), labels)
    loss.backward()
    return loss, {name: p.grad.clone() for name, p in net.named_parameters()}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = nn.functional.relu(self.bn1(self.conv1(x)))
        x = nn.functional.relu(self.bn2(self.conv2(x)) + x)
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def dump(name, net, images, labels):
    out = {"images": images, "labels": labels}
    exact = copy.deepcopy(net).double()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        out["logits"] = copy.deepcopy(net).eval()(images).double()
    loss, grad = amp_gradients(copy.deepcopy(net), images[:BATCH], labels[:BATCH])
    _, exact_grad = gradients(exact, images[:BATCH].double(), labels[:BATCH])
    out["loss"] = loss.double()
    out.update({"grad." + k: b.double() for k, b in grad.items()})
    out["float_error"] = torch.tensor(distance(grad, exact_grad), dtype=torch.float64)
    safetensors_file.save(FOLDER / f"{name}.amp.safetensors", out)
    print(f"{name}: PyTorch's bfloat16 against float64: gradients {out['float_error']:.1e}")


def main():
    torch.set_num_threads(1)
    lenet = torch_models.LeNet5(1, 8, 10)
    lenet.load_state_dict(safetensors_file.load(FOLDER / "lenet5.weights.safetensors"))
    given = safetensors_file.load(FOLDER / "lenet5.safetensors")
    dump("lenet5", lenet, given["images"], given["labels"])
    block, images, labels = make_case(Block, (3, 16, 16), 0)
    safetensors_file.save(FOLDER / "block.weights.safetensors", block.state_dict())
    dump("block", block, images, labels)


if __name__ == "__main__":
    main()
