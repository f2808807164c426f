#!/usr/bin/python3
"""Holds build/convoy against PyTorch (Debian's python3-torch), live, on fresh random weights and images (a blurred
pattern for each class, and noise):

  logits      `convoy predict` in evaluation mode
  gradients   one SGD step of `convoy train` at lr 1 without momentum or decay: weights before minus after, with the
              same dropout in PyTorch
  statistics  the running ones of the batch norms after that step
  weights     20 steps of `convoy train` at lr 0.02, momentum 0.9, weight decay 5e-4

The weights go to Convoy as a .pth file, and Convoy's checkpoint back into PyTorch with strict=True.

The truth is PyTorch in float64; its own float32 error stands beside. Gradients are taken of a few images, and of a net
whose biases keep it away from kinks for these (torch_kinks.py); 20 steps cannot avoid all kinks, so there PyTorch's own
error says how much is chance. ||g|| is the norm over all parameters. Prints a table of what is asked and what was
measured, or with --all one line for each model; exits with 1 when something misses.

  tools/compare_torch.py [--convoy build/convoy] [--model resnet18_cifar] [--batch-size 16] [--seed N] [-- FLAGS]
  tools/compare_torch.py --all [--convoy build/convoy] [--seed N]       (needs torchvision)

FLAGS go to both subcommands of convoy, as in `-- --backend reference`.
"""

import argparse
import copy
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import torch
from torch import nn

import safetensors_file
import torch_kinks
import torch_models

try:
    import torchvision
except ImportError:  # its models cannot be compared then
    torchvision = None

N_STEPS, CLASSES = 20, 10
KINK_MARGIN, N_DRAWS = 1e-5, 5
SMALL = "resnet20", "resnet32", "resnet56", "resnet18_cifar", "wrn28_10"
SMALL_SIZE, SIZE, N_IMAGES = 32, 64, 4  # of --all


def build_net(model):
    """torchvision's, or the plain one of torch_models.py."""
    if torchvision and hasattr(torchvision.models, model):
        options = {"init_weights": True} if model == "googlenet" else {}
        return getattr(torchvision.models, model)(num_classes=CLASSES, **options)
    return getattr(torch_models, model)(num_classes=CLASSES)


def make_net(model):
    net = build_net(model)
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):  # as after some training, so that a mistake in them would show
            nn.init.normal_(m.running_mean, 0, 0.2)
            nn.init.uniform_(m.running_var, 0.5, 1.5)
        if isinstance(m, nn.LayerNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.2)
        if hasattr(m, "layer_scale"):  # which starts so small that nothing behind it would count
            nn.init.uniform_(m.layer_scale, 0.5, 1.5)
    return net


def make_images(n, size):
    labels = torch.arange(n) % CLASSES
    patterns = nn.functional.interpolate(torch.randn(CLASSES, 3, 4, 4), size=size, mode="bilinear")
    return patterns[labels] + 0.3 * torch.randn(n, 3, size, size), labels


def make_clear(net, size, n):
    """Images, labels and the distance of the nearest kink from these: of some draws, since the inputs of a max-pool
    cannot be moved apart; the net's biases change."""
    best = 0, None, None
    for _ in range(N_DRAWS):
        images, _ = make_images(n, size)
        clear = copy.deepcopy(net)
        torch_kinks.clear_kinks(clear, images)
        distance = torch_models.kink_distance(clear, images)
        if best[1] is None or distance > best[0]:
            best = distance, images, clear.state_dict()
        if distance > KINK_MARGIN:
            break
    net.load_state_dict(best[2])
    return best[1], (torch.arange(n) * (CLASSES - 1)) % CLASSES, best[0]


def loss(result, labels):
    """With GoogLeNet's auxiliary heads as its paper weighs them."""
    criterion = nn.functional.cross_entropy
    if isinstance(result, torch.Tensor):
        return criterion(result, labels)
    return criterion(result.logits, labels) + 0.3 * (
        criterion(result.aux_logits1, labels) + criterion(result.aux_logits2, labels))


def sgd(net, images, labels, batch_size, lr, momentum, weight_decay):
    net = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
    batches = zip(images.to(next(net.parameters()).dtype).split(batch_size), labels.split(batch_size))
    for step, (x, y) in enumerate(batches):
        for m in net.modules():
            if isinstance(m, torch_models.Dropout):
                m.step = step
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()
    return net


def parameters(net):
    return {name: p.detach().double() for name, p in net.named_parameters()}


def share_moved(before, after):
    return sum((before[k] != p).sum().item() for k, p in after.items()) / sum(p.numel() for p in after.values())


def distance(a, b):
    """||a - b|| / ||b|| over all tensors of b together."""
    square = sum(((a[k].double() - b[k]) ** 2).sum() for k in b)
    return (square / sum((b[k] ** 2).sum() for k in b)).sqrt().item()


class Convoy:
    def __init__(self, options, model, folder):
        self.options, self.model, self.folder = options, model, folder
        self.weights = folder / "weights.pth"

    def run(self, *arguments):
        command = [*map(str, (self.options.convoy, *arguments)), "--model", self.model, *self.options.flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}exit code {done.returncode}")

    def dropouts(self, size):
        """The operators' numbers, in order."""
        command = [self.options.convoy, "explain", "--model", self.model, "--pass", "build"]
        command += ["--input", f"3x{size}x{size}", "--num-classes", str(CLASSES)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        lines = [line for line in text.splitlines() if "= dropout(" in line]
        return [int(re.search(r" id=(\d+)", line)[1]) for line in lines]

    def predict(self, images, flags=()):
        x, y = self.folder / "x.safetensors", self.folder / "y.safetensors"
        safetensors_file.save(x, {"images": images})
        self.run("predict", "--num-classes", CLASSES, "--weights", self.weights, "--input", x, "--output", y, *flags)
        return safetensors_file.load(y)["logits"]

    def train(self, images, labels, batch_size, lr, momentum, weight_decay, flags=()):
        data, out = self.folder / "data.safetensors", self.folder / "out"
        safetensors_file.save(data, {"images": images, "labels": labels})
        self.run("train", "--data", f"tensors:{data}", "--weights", self.weights, "--preset", "none", "--no-shuffle",
                 "--epochs", 1, "--batch-size", batch_size, "--lr", lr, "--momentum", momentum,
                 "--wd", weight_decay, "--lr-scheduler", "constant", "--seed", 0,
                 "--output-dir", out, "--overwrite", *flags)
        return safetensors_file.load(out / "last" / "model.safetensors")


class Table:
    def __init__(self, is_brief):
        self.is_good, self.is_brief, self.measured = True, is_brief, []
        if not is_brief:
            print(f"{'':60} {'asked':>10} {'measured':>10} {'PyTorch fp32':>13}")

    def row(self, what, asked, measured, own):
        good = measured <= asked  # false for nan
        self.is_good &= good
        self.measured.append(measured)
        if not self.is_brief:
            print(f"{what:60} {asked:10.1e} {measured:10.1e} {own:13.1e}{'' if good else '   MISSED'}", flush=True)


def compare_logits(table, convoy, net, images):
    with torch.no_grad():
        exact = {"": copy.deepcopy(net).double().eval()(images.double())}
        own = {"": copy.deepcopy(net).eval()(images)}
    table.row("logits", 1e-4, distance({"": convoy.predict(images)}, exact), distance(own, exact))


def compare_gradients(table, convoy, net, images, labels):
    """Distances in units of each parameter's allowance, max(1e-4 ||b||, 3 x own error) + 1e-6 ||g||."""
    step = len(images), 1, 0, 0
    before = parameters(net)
    nets = [sgd(n, images, labels, *step) for n in (copy.deepcopy(net).double(), net)]
    exact, own = ({k: before[k] - p for k, p in parameters(n).items()} for n in nets)
    after = convoy.train(images, labels, *step)
    build_net(convoy.model).load_state_dict(after, strict=True)
    total = sum((g ** 2).sum() for g in exact.values()).sqrt()
    worst = ("", 0.0, 0.0)
    for k, b in exact.items():
        error, own_error = (before[k] - after[k].double() - b).norm(), (own[k] - b).norm()
        allowed = max(1e-4 * b.norm(), 3 * own_error) + 1e-6 * total
        ratio = (error / allowed).item()
        if not ratio <= worst[1]:
            worst = (k, ratio, (own_error / allowed).item())
    table.row(f"gradients, worst / allowed: {worst[0]}", 1.0, worst[1], worst[2])
    exact, own = ({k: b.double() for k, b in n.named_buffers() if "running" in k} for n in nets)
    if exact:
        table.row("running statistics", 1e-4, distance(after, exact), distance(own, exact))


def compare_training(table, convoy, net, images, labels, batch_size):
    hyper = 0.02, 0.9, 5e-4
    exact = parameters(sgd(copy.deepcopy(net).double(), images, labels, batch_size, *hyper))
    own = parameters(sgd(net, images, labels, batch_size, *hyper))
    after = convoy.train(images, labels, batch_size, *hyper)
    table.row(f"weights after {N_STEPS} steps, all together", 1e-3, distance(after, exact), distance(own, exact))


def compare(options, model, size, batch_size, n_images):
    """The table, the distance of the nearest kink, and the share of the parameters that was moved away from kinks."""
    net = make_net(model)
    with tempfile.TemporaryDirectory() as folder:
        convoy = Convoy(options, model, pathlib.Path(folder))
        torch_models.replace_dropouts(net, convoy.dropouts(size))
        before = parameters(copy.deepcopy(net))
        *clear, kink = make_clear(net, size, n_images)
        moved = share_moved(before, parameters(net))
        torch.save(net.state_dict(), convoy.weights)
        table = Table(options.all is not None)
        images, labels = make_images(batch_size * (1 if options.no_training else N_STEPS), size)
        compare_logits(table, convoy, net, images[:batch_size])
        compare_gradients(table, convoy, net, *clear)
        if not options.no_training:
            compare_training(table, convoy, net, images, labels, batch_size)
    return table, kink, moved


def compare_all(options):
    """Logits, gradients and statistics of every model that PyTorch has too."""
    text = subprocess.run([options.convoy, "models"], capture_output=True, text=True, check=True).stdout
    models = [line.split()[0] for line in text.splitlines()[1:]]
    models = [m for m in models if m not in ("simple", "lenet5") and re.search(options.all, m)]
    print(f"{'':20} {'logits':>8} {'gradients':>10} {'statistics':>11} {'kink':>8} {'moved':>7}")
    options.no_training, is_good = True, True
    for model in models:
        torch.manual_seed(options.seed)  # so that a model alone repeats its line
        size = SMALL_SIZE if model in SMALL else SIZE
        table, kink, moved = compare(options, model, size, N_IMAGES, N_IMAGES)
        logits, gradients, *statistics = table.measured
        words = f"{statistics[0]:11.1e}" if statistics else f"{'-':>11}"
        print(f"{model:20} {logits:8.1e} {gradients:10.2f} {words} {kink:8.1e} {moved:7.2%} "
              f"{'PASS' if table.is_good else 'MISSED'}", flush=True)
        is_good &= table.is_good
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convoy", default=str(pathlib.Path(__file__).parent.parent / "build" / "convoy"))
    parser.add_argument("--model", default="resnet18_cifar",
                        help="one of torch_models.py, or of torchvision")
    parser.add_argument("--all", nargs="?", const="", metavar="REGEX",
                        help="every model whose name has it, one line each, without training")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--size", type=int, default=32, help="height and width of the images")
    parser.add_argument("--gradient-images", type=int, default=4)
    parser.add_argument("--no-training", action="store_true", help="logits and gradients only")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("flags", nargs="*", help="after --: more flags for convoy")
    options = parser.parse_args()
    if options.all is not None:
        print(f"{N_IMAGES} images of 3x{SIZE}x{SIZE}, small nets 3x{SMALL_SIZE}x{SMALL_SIZE}; seed {options.seed}")
        sys.exit(not compare_all(options))
    print(f"{options.model}, batch {options.batch_size} of 3x{options.size}x{options.size}, seed {options.seed}")
    torch.manual_seed(options.seed)
    table, kink, moved = compare(options, options.model, options.size, options.batch_size, options.gradient_images)
    print(f"nearest kink of the gradients' images: {kink:.1e}; moved away from kinks: {moved:.2%} of the parameters")
    sys.exit(not table.is_good)


if __name__ == "__main__":
    main()
