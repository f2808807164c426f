#!/usr/bin/python3
"""Makes tests/golden/models/lenet5.clip.safetensors from PyTorch: 20 steps of SGD from the weights and with the images
of the other golden files, computed in float64, each after torch.nn.utils.clip_grad_norm_. It holds

  images, labels        as they are in lenet5.safetensors
  max_norm              the limit: some of the steps are clipped, some are not
  norms                 of all gradients together, step by step, before they are clipped
  after.TENSOR          the weights after the last step
"""

import torch
from torch import nn

import safetensors_file
import torch_models
from make_golden_models import BATCH, FOLDER, N_IMAGES, N_STEPS, gradients

MAX_NORM = 0.6


def main():
    torch.set_num_threads(1)
    case = safetensors_file.load(FOLDER / "lenet5.safetensors")
    net = torch_models.LeNet5(1, 8, 10)
    net.load_state_dict(safetensors_file.load(FOLDER / "lenet5.weights.safetensors"))
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    norms = []
    for step in range(N_STEPS):
        at = step * BATCH % N_IMAGES
        gradients(net, case["images"][at : at + BATCH].double(), case["labels"][at : at + BATCH])
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), MAX_NORM).item())
        optimizer.step()
    out = {k: case[k] for k in ("images", "labels")}
    out["max_norm"] = torch.tensor(MAX_NORM, dtype=torch.float64)
    out["norms"] = torch.tensor(norms, dtype=torch.float64)
    out.update({"after." + k: t.float() for k, t in net.state_dict().items()})
    safetensors_file.save(FOLDER / "lenet5.clip.safetensors", out)
    n_clipped = sum(n > MAX_NORM for n in norms)
    print(f"norms from {min(norms):.3g} to {max(norms):.3g}, {n_clipped} of {N_STEPS} clipped")


if __name__ == "__main__":
    main()
