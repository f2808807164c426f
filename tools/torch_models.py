"""The models of src/models in plain PyTorch, with torchvision's names: what the golden files and the live
comparison hold Convoy against. (torchvision itself is not needed.)

A gradient is not defined where the input of a ReLU is 0 or two inputs of a max-pool are equal: a kink. float32 cannot
tell "nearly" from "exactly", so rounding decides on which side of a near kink a net lies, and two correct programs
may differ there. Comparisons of gradients therefore use images for which `kink_distance` is not tiny."""

import copy

import torch
from torch import nn


class LeNet5(nn.Module):
    def __init__(self, channels, size, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5, padding=2)
        self.fc1 = nn.Linear(16 * (size // 4) ** 2, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(x.flatten(1)))
        return self.fc3(self.relu(self.fc2(x)))


class Block(nn.Module):
    """torchvision's BasicBlock and Bottleneck: convolutions (channels, kernel, stride) and a shortcut."""

    def __init__(self, n_in, convs):
        super().__init__()
        self.n_convs = len(convs)
        n, stride = n_in, 1
        for i, (channels, kernel, s) in enumerate(convs, 1):
            self.add_module(f"conv{i}", nn.Conv2d(n, channels, kernel, s, kernel // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(channels))
            n, stride = channels, stride * s
        if stride != 1 or n != n_in:
            self.downsample = nn.Sequential(nn.Conv2d(n_in, n, 1, stride, bias=False), nn.BatchNorm2d(n))
        self.n_out = n
        self.relu = nn.ReLU()

    def forward(self, x):
        y = x
        for i in range(1, self.n_convs + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.n_convs:
                y = self.relu(y)
        return self.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(nn.Module):
    def __init__(self, blocks, width=64, bottleneck=False, small=False, channels=3, num_classes=10):
        super().__init__()
        kernel, stride = (3, 1) if small else (7, 2)
        self.n_stages = len(blocks)
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        n = width
        for stage, n_blocks in enumerate(blocks):
            layer, w = [], width << stage
            for i in range(n_blocks):
                s = 2 if stage > 0 and i == 0 else 1
                convs = [(w, 1, 1), (w, 3, s), (4 * w, 1, 1)] if bottleneck else [(w, 3, s), (w, 3, 1)]
                layer.append(Block(n, convs))
                n = layer[-1].n_out
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(n, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.n_stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


def resnet18(**options):
    return ResNet([2, 2, 2, 2], **{"num_classes": 1000, **options})


def resnet50(**options):
    return ResNet([3, 4, 6, 3], bottleneck=True, **{"num_classes": 1000, **options})


def resnet18_cifar(**options):
    return ResNet([2, 2, 2, 2], small=True, **options)


def resnet20(**options):
    return ResNet([3, 3, 3], width=16, small=True, **options)


def kink_distance(net, images):
    """The distance of the nearest kink of the net, in training mode, in float64, on these images."""
    gaps = []

    def look(module, inputs):
        x = inputs[0]
        if isinstance(module, nn.ReLU):
            gaps.append(x.abs().min().item())
            return
        window = nn.functional.unfold(x.flatten(0, 1)[:, None], module.kernel_size, stride=module.stride)
        top = window.topk(2, dim=1).values
        # where the largest is 0, the ReLU before it has let nothing through, and any choice gives gradient 0
        gaps.append((top[:, 0] - top[:, 1])[top[:, 0] > 0].min().item())

    net = copy.deepcopy(net).double().train()
    for m in net.modules():
        if isinstance(m, (nn.ReLU, nn.MaxPool2d)):
            m.register_forward_pre_hook(look)
    with torch.no_grad():
        net(images.double())
    return min(gaps)
