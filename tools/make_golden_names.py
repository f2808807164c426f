#!/usr/bin/python3
"""Writes tests/golden/models/torchvision.txt: for each of torchvision's models that Convoy has, the number of its
parameters, and a hash (FNV-1a, 64 bits) of its state_dict's names and shapes in their order, one "NAME TYPE[SHAPE]"
a line. src/models/models_test.c reads it.

    tools/make_golden_names.py > tests/golden/models/torchvision.txt
"""
import torch
import torchvision

NAMES = """resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d wide_resnet50_2 alexnet vgg11 vgg11_bn vgg13
vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn squeezenet1_1 densenet121 densenet169 mobilenet_v2 mobilenet_v3_large
mobilenet_v3_small shufflenet_v2_x1_0 regnet_y_400mf efficientnet_b0 googlenet convnext_tiny""".split()


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 2**64 - 1
    return value


def line(name, tensor):
    kind = "i64" if tensor.dtype == torch.int64 else "f32"
    return f"{name} {kind}[{','.join(map(str, tensor.shape))}]\n"


for model in NAMES:
    with torch.device("cpu" if "regnet" in model else "meta"):  # regnet computes its widths with tensors
        options = {"init_weights": False} if model == "googlenet" else {}
        net = torchvision.models.get_model(model, **options)
    keys = "".join(line(*item) for item in net.state_dict().items())
    print(model, sum(p.numel() for p in net.parameters()), format(fnv1a(keys), "016x"))
