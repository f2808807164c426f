"""Reads and writes safetensors files: 8 bytes header length, a JSON header, the tensors' bytes. Dictionaries of
torch tensors, as state_dict gives and load_state_dict takes them."""

import json
import struct

import numpy
import torch

TYPES = {"F64": numpy.float64, "F32": numpy.float32, "I64": numpy.int64, "I32": numpy.int32, "U8": numpy.uint8}
NAMES = {numpy.dtype(v): k for k, v in TYPES.items()}


def save(path, tensors):
    # wide types first, then by name: every tensor is aligned, and the same tensors give the same file
    arrays = {name: numpy.asarray(t.detach()) for name, t in tensors.items()}
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header, at = {}, 0
    for name in order:
        a = arrays[name]
        header[name] = {"dtype": NAMES[a.dtype], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            f.write(numpy.ascontiguousarray(arrays[name]).tobytes())


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        a = numpy.frombuffer(data[8 + n + start : 8 + n + end], TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(a.copy())
    return tensors
