#!/usr/bin/env python3
"""Compares Convoy's pixels with those of Pillow and torchvision.

    usage: compare_pillow.py PIXELS PHOTOS.tar

PIXELS is the program build/bench_pixels. The first 50 JPEG photographs of the archive, by name, are compared

- decoded whole: at most 2 levels apart, and the same photographs written as PNG files: not at all;
- after torchvision's Resize(256), CenterCrop(224), ToTensor and Normalize with ImageNet's figures, against Convoy's
  evaluation: on average at most 0.5 levels apart, at most 8 anywhere. A level is 1 / (255 std).

Ends with 1 if one of these does not hold. Needs Pillow, PyTorch and torchvision, whose versions are printed.
"""

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy
import PIL
import PIL.features
import PIL.Image
import PIL.ImageOps
import torchvision
import torchvision.transforms as transforms

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
N_PHOTOS = 50


def photographs(archive):
    with tarfile.open(archive) as tar:
        members = [m for m in tar.getmembers() if m.isfile() and m.name.lower().endswith((".jpg", ".jpeg"))]
        for member in sorted(members, key=lambda m: m.name)[:N_PHOTOS]:
            yield tar.extractfile(member).read()


def convoy(program, how, paths, dtype):
    """What PIXELS writes for each file."""
    out = io.BytesIO(subprocess.run([program, how, *paths], check=True, stdout=subprocess.PIPE).stdout)
    for _ in paths:
        height, width = numpy.frombuffer(out.read(16), numpy.int64)
        n = height * width * 3
        yield numpy.frombuffer(out.read(n * numpy.dtype(dtype).itemsize), dtype).reshape(height, width, 3)
    assert not out.read(1)


def pillow(path):
    """Upright, as Convoy has them."""
    return PIL.ImageOps.exif_transpose(PIL.Image.open(path)).convert("RGB")


def evaluated(path):
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    return transforms.Compose(steps)(pillow(path)).permute(1, 2, 0).numpy()


def report(title, pairs, most_mean, most):
    """Prints how far apart the pairs are, and says whether that is allowed."""
    n, n_off, total, largest, n_pairs = 0, 0, 0.0, 0.0, 0
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape, f"{title}: {ours.shape}, not {theirs.shape}"
        off = numpy.abs(ours.astype(numpy.float64) - theirs)
        n, n_off = n + off.size, n_off + int((off > 0.01).sum())
        total, largest, n_pairs = total + off.sum(), max(largest, off.max()), n_pairs + 1
    is_good = n_pairs > 0 and total / n <= most_mean and largest <= most + 0.01
    print(
        f"{title}: {n_pairs} images, mean {total / n:.5f} levels, largest {largest:.3f}, {100 * n_off / n:.3f} % differ: "
        f"{'good' if is_good else f'BAD, allowed are mean {most_mean} and largest {most}'}"
    )
    return is_good


def main(program, archive):
    print(
        f"Pillow {PIL.__version__}, its libjpeg-turbo {PIL.features.version_feature('libjpeg_turbo')}, "
        f"torchvision {torchvision.__version__}"
    )
    with tempfile.TemporaryDirectory() as folder:
        jpegs, pngs = [], []
        for i, photograph in enumerate(photographs(archive)):
            jpegs.append(pathlib.Path(folder) / f"{i}.jpg")
            jpegs[-1].write_bytes(photograph)
            pngs.append(jpegs[-1].with_suffix(".png"))
            pillow(jpegs[-1]).save(pngs[-1], compress_level=1)
        good = [
            report(title, zip(convoy(program, "whole", paths, numpy.uint8), map(numpy.array, map(pillow, paths))), most, most)
            for title, paths, most in [("JPEG decoded", jpegs, 2), ("PNG decoded", pngs, 0)]
        ]
        level = 255 * numpy.array(STD)
        pairs = zip(convoy(program, "eval", jpegs, numpy.float32), map(evaluated, jpegs))
        good.append(report("Resize, CenterCrop, Normalize", ((a * level, b * level) for a, b in pairs), 0.5, 8))
    return 0 if all(good) else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
