#!/usr/bin/env python3
"""Do others read what Convoy writes, and it what they write? One short training of torchvision's resnet18, then

  safetensors   the library of that name (PyPI) loads the checkpoint: weights and state of the optimiser
  to PyTorch    load_state_dict(strict=True) takes the weights, and the network computes what `convoy predict` does
  from PyTorch  `convoy predict` computes the same from torchvision's weights, saved by torch.save (.pth) and by safetensors
  TensorBoard   (PyPI) loads the event file: every scalar is the one of metrics.jsonl

  usage: tools/check_formats.py [build/convoy]

Needs torch, torchvision, safetensors and tensorboard. A line for each; exit code 1 when one fails."""
import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import torchvision
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

convoy = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/convoy").resolve())
CLASSES, SIZE, CLOSE = 10, 64, 1e-5  # CLOSE: ||a - b|| / ||b|| of logits
failed = 0


def say(what, good, text):
    global failed
    failed |= not good
    print(f"{what:13} {'good' if good else 'BAD '}  {text}", flush=True)


def run(*arguments):
    done = subprocess.run([convoy, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"convoy {' '.join(map(str, arguments))}\n{done.stderr}exit code {done.returncode}")


def network(state=None):
    net = torchvision.models.resnet18(num_classes=CLASSES)
    if state:
        net.load_state_dict(state, strict=True)
    return net.eval()


def predict(folder, weights, images):
    safetensors.torch.save_file({"images": images}, folder / "x.safetensors")
    run("predict", "--model", "resnet18", "--num-classes", CLASSES, "--weights", weights, "--input", folder / "x.safetensors",
        "--output", folder / "y.safetensors")
    return safetensors.torch.load_file(folder / "y.safetensors")["logits"]


def distance(net, images, logits):
    with torch.inference_mode():
        own = net(images)
    return ((logits - own).norm() / own.norm()).item()


def check_checkpoint(out):
    state = safetensors.torch.load_file(out / "last" / "model.safetensors")
    moments = safetensors.torch.load_file(out / "last" / "optimizer.safetensors")
    wanted = {name: t.shape for name, t in network().state_dict().items()}
    got = {name: t.shape for name, t in state.items()}
    say("safetensors", got == wanted and moments, f"{len(state)} tensors with torchvision's names and shapes, "
        f"{len(moments)} of the optimiser")
    return state


def check_events(out):
    events = EventAccumulator(str(out), size_guidance={"scalars": 0})
    events.Reload()
    expected, update = {}, 0
    for line in (out / "metrics.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "step":
            update = event["update"]
            expected.update({("step/loss", update): event["loss"], ("step/lr", update): event["lr"]})
        if event["event"] == "epoch":  # stands at its last update
            expected.update({(f"{part}/{key}", update): event[f"{part}_{key}"]
                             for part in ("train", "val") for key in ("loss", "top1", "top5")})
    got = {(tag, e.step): e.value for tag in events.Tags()["scalars"] for e in events.Scalars(tag)}
    wrong = [key for key, value in expected.items() if key not in got or abs(got[key] - value) > 1e-6 * abs(value) + 1e-9]
    say("TensorBoard", not wrong, f"{len(expected)} scalars of metrics.jsonl in {len(got)} of the event file"
        + (f"; not there or different: {wrong[0]}" if wrong else ""))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        out = folder / "run"
        torch.manual_seed(1)
        run("train", "--model", "resnet18", "--data", f"synthetic:3x{SIZE}x{SIZE},classes={CLASSES},images=64", "--epochs", 2,
            "--batch-size", 16, "--lr", 0.01, "--print-freq", 1, "--workers", 1, "--output-dir", out)
        images = torch.randn(4, 3, SIZE, SIZE)

        state = check_checkpoint(out)
        d = distance(network(state), images, predict(folder, out / "last" / "model.safetensors", images))
        say("to PyTorch", d <= CLOSE, f"load_state_dict(strict=True); logits differ by {d:.1e}")

        net = network()
        torch.save(net.state_dict(), folder / "net.pth")
        safetensors.torch.save_file(net.state_dict(), folder / "net.safetensors")
        for file in "net.pth", "net.safetensors":
            d = distance(net, images, predict(folder, folder / file, images))
            say("from PyTorch", d <= CLOSE, f"{file}; logits differ by {d:.1e}")
        check_events(out)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, safetensors {safetensors.__version__}")
    sys.exit(failed)


main()
