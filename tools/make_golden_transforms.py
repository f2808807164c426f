#!/usr/bin/env python3
"""Writes tests/golden/distortions.safetensors: an image and what torchvision's operations on Pillow images make of it; and
prints the figures that tests in src/data hold against torchvision's transforms.

Needs PyTorch, torchvision and Pillow, whose versions are printed. Random boxes cannot be compared one by one, as the
generators differ: their means can.
"""

import pathlib
import sys

import numpy
import PIL
import PIL.Image
import torch
import torchvision
import torchvision.transforms as transforms
import torchvision.transforms.functional as F
from torchvision.transforms.autoaugment import _apply_op

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import safetensors_file  # noqa: E402

HEIGHT, WIDTH, DRAWS = 48, 64, 200000


def random_erasing():
    """Mean height, width and area of what RandomErasing's defaults erase of an image."""
    torch.manual_seed(1)
    image = torch.empty(3, HEIGHT, WIDTH)
    height = width = area = n = 0
    for _ in range(DRAWS):
        _, _, h, w, _ = transforms.RandomErasing.get_params(image, (0.02, 0.33), (0.3, 3.3), [0.0])
        if h == HEIGHT:  # no box was found
            continue
        height, width, area, n = height + h, width + w, area + h * w, n + 1
    print(f"random_erase_test.c: height {height / n:.3f}, width {width / n:.3f}, area {area / n:.2f}")


AMOUNTS = {
    "Identity": [0],
    "ShearX": [0.09, -0.3, 0.99],
    "ShearY": [0.3, -0.66],
    "TranslateX": [7.25, -11],
    "TranslateY": [5.4375, -32],
    "Rotate": [9, -27, 135, -90],
    "Brightness": [0.27, -0.9, 0.99],
    "Color": [0.27, -0.45, 0.99],
    "Contrast": [0.27, -0.9, 0.99],
    "Sharpness": [0.27, -0.9, 0.99],
    "Posterize": [7, 4, 2],
    "Solarize": [178.5, 25.5, 255],
    "AutoContrast": [0],
    "Equalize": [0],
    "Hue": [0.1, -0.3, 0.5],
}


def picture():
    """Colours that go from one corner to another, with noise, dark on one side."""
    random = numpy.random.default_rng(1)
    y, x = numpy.mgrid[0:32, 0:44]
    ground = numpy.stack([4 * x + y, 6 * y, 200 - 3 * x - 2 * y], axis=2)
    return numpy.clip(ground + random.integers(-20, 21, ground.shape), 0, 240).astype(numpy.uint8)


def distort(image, name, amount):
    if name == "Hue":
        return F.adjust_hue(image, amount)
    return _apply_op(image, name, amount, transforms.InterpolationMode.BILINEAR, None)


def distortions(path):
    image = PIL.Image.fromarray(picture())
    tensors = {"input": torch.from_numpy(picture())}
    for name, amounts in AMOUNTS.items():
        for amount in amounts:
            tensors[f"{name} {amount}"] = torch.from_numpy(numpy.array(distort(image, name, amount)))
    safetensors_file.save(path, tensors)
    print(f"{path}: Pillow {PIL.__version__}, torchvision {torchvision.__version__}")


if __name__ == "__main__":
    distortions(pathlib.Path(__file__).parent.parent / "tests/golden/distortions.safetensors")
    random_erasing()
