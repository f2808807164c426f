"""Moves a net away from its kinks (torch_models.py), so that its gradients can be compared.

A large net has millions of inputs of ReLUs, and so always some within rounding of 0: no draw of images avoids them all.
But the bias of a channel moves all of its inputs together. So the net runs forward once in float64, and before each
ReLU the bias that was added last is changed by at most REACH, such that 0 lies in the middle of the widest gap between
this channel's values."""

import copy

import torch
from torch import nn

import torch_models

REACH = 0.05
LAYERS = nn.Conv2d, nn.Linear, nn.BatchNorm2d, nn.LayerNorm


def widest_gap(values):
    """The middle of the widest gap between values, of which only those within REACH of 0 count; ends included."""
    near, _ = values[values.abs() < REACH].sort()
    ends = values.new_tensor([REACH])
    near = torch.cat([-ends, near, ends])
    at = (near[1:] - near[:-1]).argmax()
    return ((near[at] + near[at + 1]) / 2).item()


class Clearing(torch_models.Kinks):
    def __init__(self, net):
        super().__init__()
        self.recent = []  # layers with a bias that ran, the latest last
        for m in net.modules():
            if isinstance(m, LAYERS) and m.bias is not None:
                m.register_forward_hook(lambda m, x, y: self.recent.append(m))

    def clear(self, x, kinks):
        """x + the changes, a new tensor; the layer's bias changes too."""
        axis = 1 if x.dim() == 4 else x.dim() - 1
        layer = next((m for m in reversed(self.recent) if len(m.bias) == x.shape[axis]), None)
        if layer is None:
            return x
        channels = x.movedim(axis, 0).flatten(1)
        change = torch.stack([-x.new_tensor(widest_gap(torch.cat([c - k for k in kinks]))) for c in channels])
        change = change.float().double()  # the net is one in float32
        layer.bias += change
        return x + change.reshape([-1] + [1] * (x.dim() - 1 - axis))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kinks = self.PLACES.get(function.__name__)
        if kinks:
            args = (self.clear(args[0], kinks), *args[1:])
        return super().__torch_function__(function, types, args, kwargs)


def clear_kinks(net, images):
    """Changes the biases of the net, for these images in training mode."""
    probe = copy.deepcopy(net).double().train()
    with torch.no_grad(), Clearing(probe):
        probe(images.double())
    with torch.no_grad():
        for p, q in zip(net.parameters(), probe.parameters()):
            p.copy_(q)
