#!/usr/bin/env python3
"""Prints the figures that tests in src/data hold against torchvision's transforms.

Needs PyTorch and torchvision. Random boxes cannot be compared one by one, as the generators differ: their means can.
"""

import torch
import torchvision.transforms as transforms

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


if __name__ == "__main__":
    random_erasing()
