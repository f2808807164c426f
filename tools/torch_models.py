"""The models of src/models in plain PyTorch, with torchvision's names: what the golden files and the live
comparison hold Convoy against. (torchvision itself is not needed.)

A gradient is not defined where the input of a ReLU is 0 or two inputs of a max-pool are equal: a kink. float32 cannot
tell "nearly" from "exactly", so rounding decides on which side of a near kink a net lies, and two correct programs
may differ there. Comparisons of gradients therefore use images for which `kink_distance` is not tiny."""

import copy

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode


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


def resnet32(**options):
    return ResNet([5, 5, 5], width=16, small=True, **options)


def resnet56(**options):
    return ResNet([9, 9, 9], width=16, small=True, **options)


class WideBlock(nn.Module):
    """Of a wide ResNet: batch norm and ReLU before each convolution."""

    def __init__(self, n_in, n, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(n_in), nn.Conv2d(n_in, n, 3, stride, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(n), nn.Conv2d(n, n, 3, 1, 1, bias=False)
        self.downsample = nn.Conv2d(n_in, n, 1, stride, bias=False) if n_in != n or stride != 1 else None
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.bn1(x))
        shortcut = self.downsample(y) if self.downsample else x
        return shortcut + self.conv2(self.relu(self.bn2(self.conv1(y))))


class WideResNet(nn.Module):
    def __init__(self, blocks, width, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        n = 16
        for stage in range(3):
            layer = []
            for i in range(blocks):
                layer.append(WideBlock(n, width << stage, 2 if stage > 0 and i == 0 else 1))
                n = width << stage
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layer))
        self.bn1, self.relu, self.fc = nn.BatchNorm2d(n), nn.ReLU(), nn.Linear(n, num_classes)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(self.relu(self.bn1(x)).mean((2, 3)))


def wrn28_10(num_classes=10):
    return WideResNet(4, 160, num_classes)


class Kinks(TorchFunctionMode):
    """Looks at the inputs of the functions that have kinks, and keeps how far the nearest is."""

    PLACES = {"relu": [0], "relu_": [0], "hardtanh": [0, 6], "hardsigmoid": [-3, 3], "hardswish": [-3, 3]}

    def __init__(self):
        super().__init__()
        self.gaps = [float("inf")]

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__
        for kink in self.PLACES.get(name, ()):
            self.gaps.append((args[0] - kink).abs().min().item())
        if "max_pool2d" in name:
            self.look_at_pool(*args, **kwargs)
        return function(*args, **kwargs)

    def look_at_pool(self, x, kernel_size, stride=None, padding=0, *_, **__):
        stride = stride or kernel_size
        after = padding + stride - 1  # with ceil_mode the last windows hang over the edge
        x = nn.functional.pad(x, [padding, after, padding, after], value=-1e30)
        window = nn.functional.unfold(x.flatten(0, 1)[:, None], kernel_size, stride=stride)
        top = window.max(dim=1, keepdim=True).values
        # where the largest is 0, the ReLU before it has let nothing through, and any choice gives gradient 0; equal
        # ones in float64 come from one pixel, by the pool before with its overlapping windows, and any of them leads
        # there: so the distance is that to the largest of the others
        gaps = (top - window.masked_fill(window == top, -1e30).max(dim=1, keepdim=True).values)[top > 0]
        self.gaps += gaps.flatten().sort().values[:1].tolist()


def kink_distance(net, images):
    """The distance of the nearest kink of the net, in training mode, in float64, on these images."""
    net = copy.deepcopy(net).double().train()
    with torch.no_grad(), Kinks() as kinks:
        net(images.double())
    return min(kinks.gaps)


def philox(key, counter):
    """Philox 4x32-10 of Salmon et al., 2011: arrays of counters."""
    mask, (k0, k1), (c0, c1, c2, c3) = 0xFFFFFFFF, key, [np.asarray(c, dtype=np.uint64) for c in counter]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & mask, (p0 >> 32) ^ c3 ^ k1, p0 & mask
        k0, k1 = np.uint64((int(k0) + 0x9E3779B9) & mask), np.uint64((int(k1) + 0xBB67AE85) & mask)
    return np.stack([c0, c1, c2, c3], -1)


def splitmix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


class Dropout(nn.Module):
    """Dropout with Convoy's numbers (src/ops/dropout.h): of operator `number`, seed 0, and `step` updates before."""

    def __init__(self, p, number, per_image):
        super().__init__()
        self.p, self.number, self.per_image, self.step = p, number, per_image, 0

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        shape = [len(x)] + [1] * (x.dim() - 1) if self.per_image else x.shape
        n = int(np.prod(shape))
        key = splitmix64(4 << 56)  # 4: the use "dropout"
        position = np.arange((n + 3) // 4, dtype=np.uint64)
        zero = np.zeros_like(position)
        numbers = philox((np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)),
                         (position, zero + np.uint64(self.number), zero + np.uint64(self.step), zero))
        kept = torch.from_numpy((numbers.flatten()[:n] >= self.p * 2**32).astype(np.float64))
        return x * (kept.reshape(shape) / (1 - self.p)).to(x.dtype)


def replace_dropouts(net, numbers):
    """Gives the net's dropouts, in the order of its modules, Convoy's numbers; `numbers` are those of the operators.
    torchvision's MBConv has a StochasticDepth even where it has no shortcut, and does not run it there."""
    numbers = list(numbers)
    for path, child in list(net.named_modules()):
        parent, name = net.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
        kind = type(child).__name__
        if getattr(parent, "use_res_connect", True) and kind in ("Dropout", "StochasticDepth") and child.p > 0:
            setattr(parent, name, Dropout(child.p, numbers.pop(0), kind == "StochasticDepth"))
    assert not numbers, "Convoy has more dropouts than PyTorch"
