#!/usr/bin/env python3
"""What PyTorch's resnet20 learns with bench/accuracy's recipe: the same network (projection shortcuts), first weights
from the same distributions, the same augmentation, schedule and optimiser, in fp32.

  usage: accuracy.py CIFAR [--epochs 10] [--batch-size 16] [--lr 0.05] [--weight-decay 2e-4] [--pad 2] [--seed 0]
                     [--cycle-momentum] [--threads 1]

CIFAR holds train/CLASS/*.jpg and test/CLASS/*.jpg. Prints a line for every epoch, the last one with top-1."""
import argparse
import time

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


def resnet20(classes):
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for width in (16, 32, 64):
        for i in range(3):
            layers.append(Block(inputs, width, 2 if width > 16 and i == 0 else 1))
            inputs = width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net.to(memory_format=torch.channels_last)


def load(folder):
    """All images as one uint8 tensor [N,3,32,32], and their classes."""
    data = torchvision.datasets.ImageFolder(folder, transform=torchvision.transforms.PILToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=1000)
    images, labels = zip(*loader)
    return torch.cat(images), torch.cat(labels)


def batch(images, pick, pad, generator):
    """The images of `pick`, each cropped at its own offset of the padded image and flipped half the time."""
    x = F.pad(images[pick], (pad,) * 4)
    out = torch.empty((len(pick), *images.shape[1:]), dtype=torch.uint8)
    draws = torch.randint(0, 2 * pad + 1, (len(pick), 2), generator=generator).tolist()
    flips = torch.randint(0, 2, (len(pick),), generator=generator).tolist()
    height, width = images.shape[2:]
    for i, ((top, left), flip) in enumerate(zip(draws, flips)):
        part = x[i, :, top:top + height, left:left + width]
        out[i] = part.flip(2) if flip else part
    return normalised(out)


def normalised(x):
    mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
    return ((x.float() / 255 - mean) / std).to(memory_format=torch.channels_last)


def top1(net, images, labels):
    net.eval()
    with torch.inference_mode():
        parts = zip(images.split(500), labels.split(500))
        right = sum((net(normalised(x)).argmax(1) == y).sum().item() for x, y in parts)
    net.train()
    return 100 * right / len(images)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cifar")
    for name, default in (("epochs", 10), ("batch-size", 16), ("pad", 2), ("seed", 0), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--weight-decay", type=float, default=2e-4)
    parser.add_argument("--cycle-momentum", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)

    images, labels = load(f"{args.cifar}/train")
    test_images, test_labels = load(f"{args.cifar}/test")
    net = resnet20(int(labels.max()) + 1)
    optimizer = torch.optim.SGD(net.parameters(), args.lr, momentum=0.9, nesterov=True, weight_decay=args.weight_decay)
    steps = len(images) // args.batch_size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * steps,
                                                   cycle_momentum=args.cycle_momentum)
    for epoch in range(1, args.epochs + 1):
        start, right = time.perf_counter(), 0
        order = torch.randperm(len(images), generator=generator)
        for pick in order[:steps * args.batch_size].split(args.batch_size):
            logits = net(batch(images, pick, args.pad, generator))
            optimizer.zero_grad()
            F.cross_entropy(logits, labels[pick]).backward()
            optimizer.step()
            schedule.step()
            right += (logits.argmax(1) == labels[pick]).sum().item()
        seconds = time.perf_counter() - start
        n = steps * args.batch_size
        print(f"epoch {epoch}/{args.epochs}: training top-1 {100 * right / n:.2f} %; validation top-1 "
              f"{top1(net, test_images, test_labels):.2f} %, {n / seconds:.0f} images/s", flush=True)


main()
