"""usage: loader_epochs.py IMAGES WORKERS EPOCHS: images/s, the median of epochs of torchvision's ImageFolder with its usual
training transforms in a DataLoader, after one epoch to warm up."""
import statistics
import sys
import time

import torch
import torchvision
from torchvision.transforms import v2

torch.set_num_threads(1)
images, workers, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
transform = v2.Compose([
    v2.RandomResizedCrop(224),
    v2.RandomHorizontalFlip(),
    v2.PILToTensor(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
])
dataset = torchvision.datasets.ImageFolder(images, transform)
loader = torch.utils.data.DataLoader(dataset, 50, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
rates = []
for epoch in range(epochs + 1):
    start = time.perf_counter()
    for _ in loader:
        pass
    rates.append(len(dataset) / (time.perf_counter() - start))
print(statistics.median(rates[1:]))
