#!/usr/bin/python3
"""Writes tests/golden/ops.txt: what PyTorch computes, in float64, for every operator, forward and backward.

    tools/make_golden_ops.py > tests/golden/ops.txt

The file is made once and committed; src/ops/golden_test.c reads it. One case is

    case OPERATOR ATTRIBUTES
    in TYPE[SHAPE] VALUES          one line per input, "in -" for an absent one
    out K VALUES                   the result K; results without a line are not compared
    gout VALUES                    the gradient of result 0
    gin I VALUES                   the gradient of input I

Inputs have three decimals, so that text gives the same number everywhere. What PyTorch has no formula for
(the numbers of dropout, the ranks of equal scores) is written out here once more, in plain Python.
"""
import math

import torch
import torch.nn.functional as F

torch.manual_seed(20240601)
torch.set_default_dtype(torch.float64)


def normal(*shape):
    return (torch.randn(*shape) * 1000).round() / 1000


def uniform(low, high, *shape):
    return ((torch.rand(*shape) * (high - low) + low) * 1000).round() / 1000


def text(tensor, digits):
    numbers = torch.as_tensor(tensor, dtype=torch.float64).flatten().tolist()
    return " ".join(format(v, digits) for v in numbers)


def case(op, attrs, inputs, outputs, differentiate=(), gout=None):
    """outputs(*inputs) gives the results by number; `differentiate` lists the inputs with a gradient."""
    inputs = [None if x is None else x.clone() for x in inputs]
    for i in differentiate:
        inputs[i].requires_grad_()
    results = outputs(*inputs)
    print("case", op, attrs)
    for x in inputs:
        if x is None:
            print("in -")
            continue
        kind = {torch.float64: "f32", torch.int64: "i64", torch.uint8: "u8", torch.int32: "i32"}[x.dtype]
        numbers = text(x.detach(), ".4g" if x.is_floating_point() else ".0f")
        print(f"in {kind}[{','.join(map(str, x.shape))}] {numbers}")
    for k, y in results.items():
        print(f"out {k} {text(y.detach(), '.13g')}")
    if differentiate:
        gout = normal(*results[0].shape) if gout is None else gout
        results[0].backward(gout)
        print(f"gout {text(gout, '.4g')}")
        for i in differentiate:
            print(f"gin {i} {text(inputs[i].grad, '.13g')}")


def convolutions():
    def conv(attrs, x, weight, bias, **options):
        inputs = [normal(*x), normal(*weight), normal(*bias) if bias else None]
        wanted = (0, 1, 2) if bias else (0, 1)
        case("conv2d", attrs, inputs, lambda x, w, b: {0: F.conv2d(x, w, b, **options)}, wanted)

    conv("", (1, 1, 1, 1), (1, 1, 1, 1), (1,))
    conv("kernel=3x3 padding=1x1", (2, 3, 5, 5), (4, 3, 3, 3), (4,), padding=1)
    conv("kernel=3x3 stride=2x2 padding=1x1", (2, 3, 6, 5), (2, 3, 3, 3), None, stride=2, padding=1)
    conv("stride=2x2", (2, 3, 5, 4), (4, 3, 1, 1), None, stride=2)
    conv("kernel=5x5 padding=2x2", (1, 1, 6, 6), (2, 1, 5, 5), (2,), padding=2)
    conv("kernel=3x3 padding=2x2 dilation=2x2", (1, 2, 6, 7), (3, 2, 3, 3), (3,), padding=2, dilation=2)
    conv("kernel=3x3 padding=1x1 groups=2", (2, 4, 4, 4), (6, 2, 3, 3), (6,), padding=1, groups=2)
    conv("kernel=3x3 padding=1x1 groups=3", (2, 3, 4, 5), (3, 1, 3, 3), None, padding=1, groups=3)
    conv("kernel=2x3 stride=3x1 padding=3x4 dilation=1x2", (1, 2, 4, 5), (3, 2, 2, 3), (3,),
         stride=(3, 1), padding=(3, 4), dilation=(1, 2))


def linears():
    def linear(x, weight, bias):
        inputs = [normal(*x), normal(*weight), normal(*bias) if bias else None]
        case("linear", "", inputs, lambda x, w, b: {0: F.linear(x, w, b)}, (0, 1, 2) if bias else (0, 1))

    linear((3, 7), (5, 7), (5,))
    linear((3, 7), (5, 7), None)
    linear((2, 1, 4, 6), (6, 6), (6,))
    linear((7,), (3, 7), (3,))
    case("channel_sum", "", [normal(2, 3, 4, 5)], lambda x: {0: x.sum((0, 2, 3))})
    case("channel_sum", "axis=-1", [normal(2, 3, 4)], lambda x: {0: x.sum((0, 1))})


def batch_norms():
    def norm(attrs, shape, residual=False, training=True, relu=False, eps=1e-5):
        c = shape[1]
        inputs = [normal(*shape), normal(c), normal(c), normal(c), uniform(0.5, 2, c)]
        inputs.append(normal(*shape) if residual else None)

        def outputs(x, weight, bias, mean, var, residual):
            y = F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training=training, eps=eps)
            y = y if residual is None else y + residual
            result = {0: F.relu(y) if relu else y, 1: mean, 2: var, 3: torch.zeros(2 * c + 1)}
            if training:
                values = x.transpose(0, 1).reshape(c, -1)
                n = torch.tensor([float(len(x))])
                result[1], result[2] = values.mean(1), values.var(1, unbiased=False)
                result[3] = torch.cat([n * values.mean(1), n * values.var(1, unbiased=True), n])
            return result

        case("batch_norm", attrs, inputs, outputs, (0, 1, 2, 5) if residual else (0, 1, 2))

    norm("", (3, 2, 3, 4))
    norm("", (4, 3))
    norm("relu=true", (2, 3, 3, 3), relu=True)
    norm("relu=true eps=0.001", (2, 3, 3, 3), residual=True, relu=True, eps=0.001)
    norm("", (2, 3, 3, 3), residual=True)
    norm("training=false", (2, 3, 3, 3), training=False)
    norm("training=false relu=true", (2, 3, 3, 3), residual=True, training=False, relu=True)

    # the update, against the module itself
    for momentum in (0.1, 0.3):
        module = torch.nn.BatchNorm2d(3, momentum=momentum)
        module.running_mean, module.running_var = normal(3), uniform(0.5, 2, 3)
        module.num_batches_tracked += 41
        x = normal(4, 3, 2, 3)
        values = x.transpose(0, 1).reshape(3, -1)
        stats = torch.cat([4 * values.mean(1), 4 * values.var(1, unbiased=True), torch.tensor([4.0])])
        inputs = [module.running_mean.clone(), module.running_var.clone(), module.num_batches_tracked.clone()]
        module(x)
        after = {0: module.running_mean, 1: module.running_var, 2: module.num_batches_tracked}
        exact_case("batch_norm_update", f"momentum={momentum}", inputs + [stats], after)


def exact_case(op, attrs, inputs, results):
    """Inputs that are results themselves: written with all their digits."""
    print("case", op, attrs)
    for x in inputs:
        if x is None:
            print("in -")
            continue
        kind = {torch.float64: "f32", torch.int64: "i64", torch.uint8: "u8"}[x.dtype]
        print(f"in {kind}[{','.join(map(str, x.shape))}] {text(x, '.17g')}")
    for k, y in results.items():
        print(f"out {k} {text(y, '.13g')}")


def pools():
    def pool(op, attrs, shape, function):
        case(op, attrs, [normal(*shape)], lambda x: {0: function(x)}, (0,))

    pool("max_pool", "kernel=2x2", (2, 3, 5, 4), lambda x: F.max_pool2d(x, 2))
    pool("max_pool", "kernel=3x3 stride=2x2 padding=1x1", (2, 2, 7, 6), lambda x: F.max_pool2d(x, 3, 2, 1))
    pool("max_pool", "kernel=3x3 stride=2x2 ceil_mode=true", (1, 2, 8, 6),
         lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True))
    pool("max_pool", "kernel=2x2 stride=3x3 padding=1x1 ceil_mode=true", (1, 3, 6, 6),
         lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True))
    pool("max_pool", "kernel=2x3 stride=1x2 padding=1x0 dilation=2x1", (1, 2, 6, 8),
         lambda x: F.max_pool2d(x, (2, 3), (1, 2), (1, 0), (2, 1)))
    pool("avg_pool", "kernel=2x2", (2, 3, 5, 4), lambda x: F.avg_pool2d(x, 2))
    pool("avg_pool", "kernel=3x3 stride=2x2 padding=1x1", (2, 2, 7, 6), lambda x: F.avg_pool2d(x, 3, 2, 1))
    pool("avg_pool", "kernel=3x3 stride=2x2 padding=1x1 count_include_pad=false", (2, 2, 7, 6),
         lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
    pool("avg_pool", "kernel=3x2 stride=2x3 padding=1x1 ceil_mode=true", (1, 3, 6, 6),
         lambda x: F.avg_pool2d(x, (3, 2), (2, 3), 1, ceil_mode=True))
    pool("avg_pool", "kernel=3x2 stride=2x3 padding=1x1 ceil_mode=true count_include_pad=false", (1, 3, 6, 6),
         lambda x: F.avg_pool2d(x, (3, 2), (2, 3), 1, ceil_mode=True, count_include_pad=False))
    pool("adaptive_avg_pool", "", (2, 3, 4, 5), lambda x: F.adaptive_avg_pool2d(x, 1))
    pool("adaptive_avg_pool", "output=3x2", (2, 2, 7, 5), lambda x: F.adaptive_avg_pool2d(x, (3, 2)))
    pool("adaptive_avg_pool", "output=5x7", (1, 2, 2, 3), lambda x: F.adaptive_avg_pool2d(x, (5, 7)))


def simple():
    case("relu", "", [normal(2, 3, 4, 4)], lambda x: {0: F.relu(x)}, (0,))
    case("add", "", [normal(2, 3, 4), normal(2, 3, 4)], lambda a, b: {0: a + b}, (0, 1))
    case("flatten", "", [normal(2, 3, 2, 4)], lambda x: {0: x.flatten(1)}, (0,))
    case("unflatten", "d1=3 d2=2 d3=4", [normal(2, 24)], lambda x: {0: x.reshape(2, 3, 2, 4)})
    case("softmax", "", [normal(3, 7)], lambda x: {0: F.softmax(x, -1)}, (0,))
    case("softmax", "", [normal(2, 3, 2, 5)], lambda x: {0: F.softmax(x, -1)}, (0,))
    case("mean", "", [normal(3, 2, 4, 5)], lambda x: {0: x.mean((1, 2, 3))}, (0,))
    case("batch_mean", "", [normal(5), torch.tensor([7.0])], lambda x, d: {0: (x.sum() / d)}, (0,))
    case("constant", "", [], lambda: {0: torch.ones(1)})
    case("constant", "value=-2.5", [], lambda: {0: torch.tensor([-2.5])})
    for op in ("reorder", "all_reduce", "broadcast"):
        case(op, "", [normal(2, 3)], lambda x: {0: x})


def losses():
    def entropy(attrs, n, k, smoothing, divisor, scale=1):
        logits, labels = normal(n, k) * scale, torch.randint(k, (n,))

        def outputs(x, y, d):
            each = F.cross_entropy(x, y, reduction="none", label_smoothing=smoothing)
            return {0: each.sum() / d, 1: each, 2: F.softmax(x, -1)}

        case("cross_entropy", attrs, [logits, labels, torch.tensor([float(divisor)])], outputs, (0,))

    entropy("", 4, 10, 0.0, 4)
    entropy("", 1, 3, 0.0, 9)
    entropy("label_smoothing=0.1", 3, 17, 0.1, 5)
    entropy("label_smoothing=1", 2, 5, 1.0, 2)
    entropy("", 2, 5, 0.0, 2, scale=1000)  # overflows unless the largest is subtracted first

    logits, labels = (normal(9, 8) * 2).round(), torch.randint(8, (9,))  # few distinct scores: some are equal
    ranks = []
    for row, label in zip(logits.tolist(), labels.tolist()):
        order = sorted(range(8), key=lambda k: (-row[k], k))
        ranks.append(order.index(label))
    hits = [sum(r == 0 for r in ranks), sum(r < 5 for r in ranks)]
    case("accuracy", "", [logits, labels], lambda x, y: {0: torch.tensor(ranks), 1: torch.tensor(hits)})


def philox(key, counter):
    """Philox 4x32-10 of Salmon et al., 2011."""
    mask, (k0, k1), (c0, c1, c2, c3) = 0xFFFFFFFF, key, counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & mask, (p0 >> 32) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c0, c1, c2, c3


def splitmix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def dropouts():
    def dropout(attrs, shape, p, operator, seed, step, first):
        key = splitmix64(seed ^ (4 << 56))  # 4: the use "dropout"
        kept = []
        for i in range(torch.Size(shape).numel()):
            element = first * torch.Size(shape[1:]).numel() + i
            position = element // 4
            counter = (position & 0xFFFFFFFF, operator, step & 0xFFFFFFFF, (step >> 32) ^ (position >> 32))
            number = philox((key & 0xFFFFFFFF, key >> 32), counter)[element % 4]
            kept.append(float(number >= p * 2**32))
        mask = torch.tensor(kept).reshape(shape) / (1 - p)
        inputs = [normal(*shape), torch.tensor([seed, step, first])]
        case("dropout", attrs, inputs, lambda x, r: {0: x * mask}, (0,))

    dropout("", (3, 5), 0.5, 0, 0, 0, 0)
    dropout("p=0.3 id=7", (3, 5), 0.3, 7, 1234567890123, 42, 5)
    dropout("p=0.1 id=4000000000", (2, 3, 2, 3), 0.1, 4000000000, 3, 2**40 + 1, 10**9)
    case("dropout", "training=false", [normal(2, 3), torch.tensor([1, 2, 3])], lambda x, r: {0: x}, (0,))


def optimizer(op, attrs, lr, states, make):
    """Three updates of two parameters; the states before and after each, but for those that PyTorch does not keep."""
    shapes = ((2, 3), (4,))
    params = [normal(*shape).requires_grad_() for shape in shapes]
    torch_optimizer = make(params)

    def state(p):
        return [torch_optimizer.state[p].get(name) for name in states]

    for update in (1, 2, 3):
        inputs, results = [torch.tensor([lr, float(update)])], {}
        for p in params:
            p.grad = normal(*p.shape)
            kept = [torch.zeros_like(p) if value is None else value.clone() for value in state(p)]
            inputs += [p.detach().clone(), p.grad.clone()] + kept
        torch_optimizer.step()
        for k, p in enumerate(params):
            for s, value in enumerate([p.detach()] + state(p)):
                if value is not None or op == "sgd":
                    results[k * (1 + len(states)) + s] = torch.zeros_like(p) if value is None else value.clone()
        exact_case(op, attrs, inputs, results)


def optimizers():
    sgd = ["momentum_buffer"]
    optimizer("sgd", "weight_decay=0.01", 0.1, sgd, lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01))
    optimizer("sgd", "momentum=0.9 weight_decay=0.0005", 0.1, sgd,
              lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.0005))
    optimizer("sgd", "momentum=0.9 dampening=0.2", 0.1, sgd,
              lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.2))
    optimizer("sgd", "momentum=0.9 weight_decay=0.01 nesterov=true", 0.05, sgd,
              lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01, nesterov=True))
    adamw = ["exp_avg", "exp_avg_sq"]
    optimizer("adamw", "", 0.01, adamw, lambda p: torch.optim.AdamW(p, 0.01))
    optimizer("adamw", "beta1=0.8 beta2=0.95 eps=0.001 weight_decay=0.1", 0.02, adamw,
              lambda p: torch.optim.AdamW(p, 0.02, betas=(0.8, 0.95), eps=0.001, weight_decay=0.1))


def norms_over_shards():
    """batch_norm over the shards of a batch, put together from rows; against PyTorch over the whole batch."""
    def row(*parts):
        flat = torch.cat([p.flatten() for p in parts])
        return torch.cat([flat, torch.zeros(-len(flat) % 16)])

    def channels(x):
        return x.transpose(0, 1).reshape(x.shape[1], -1)

    def moments(x, c):
        if len(x) == 0:
            return row(torch.zeros(2 * c + 2))
        v = channels(x)
        m2 = v.var(1, unbiased=False) * v.shape[1]
        return row(v.mean(1), m2, torch.tensor([float(v.shape[1]), float(len(x))]))

    def norm(sizes, c, inner, relu, residual, eps):
        n, attrs = sum(sizes), (f"eps={eps} " if eps != 1e-5 else "") + ("relu=true" if relu else "")
        x, weight, bias, dy = normal(n, c, *inner) * 3 + 50, normal(c), normal(c), normal(n, c, *inner)
        other = normal(n, c, *inner) if residual else torch.zeros(n, c, *inner)
        x.requires_grad_(), other.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()
        y = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps) + other
        (F.relu(y) if relu else y).backward(dy)
        mask = (y > 0).to(torch.uint8) if relu else None
        xs, rows = x.detach().split(sizes), torch.stack([moments(s, c) for s in x.detach().split(sizes)])
        v = channels(x.detach())
        mean, var = v.mean(1), v.var(1, unbiased=False)
        exact_case("batch_norm_moments", "", [xs[0]], {0: rows[0]})
        exact_case("exchange_rows", "", [rows[0]], {0: rows[0]})
        stats = torch.cat([sizes[0] * mean, sizes[0] * v.var(1, unbiased=True), torch.tensor([float(sizes[0])])])
        exact_case("batch_norm_merge", f"channels={c}", [rows, rows[0]], {0: mean, 1: var, 2: stats})
        u = other.grad
        sums = torch.stack([row(channels(a).sum(1), channels(a * (b - mean.reshape(1, c, *[1] * len(inner)))).sum(1),
                                torch.tensor([float(b.numel() // c)]))
                            for a, b in zip(u.split(sizes), xs)])
        part = [t.split(sizes)[0] if t is not None else None for t in (dy, x.detach(), mask)]
        shard = sums[0][c:2 * c] / (var + eps).sqrt()
        exact_case("batch_norm_backward_sums", attrs, [part[0], part[1], mean, var, part[2]],
                   {0: sums[0], 1: shard, 2: sums[0][:c]})
        exact_case("batch_norm_backward_shift", attrs,
                   [part[0], part[1], weight.detach(), mean, var, sums, part[2]],
                   {0: x.grad.split(sizes)[0], 1: u.split(sizes)[0]})

    norm([2, 1, 3], 3, (2, 3), relu=False, residual=False, eps=1e-5)
    norm([1, 2, 0, 2, 1], 2, (3, 2), relu=True, residual=True, eps=0.001)
    norm([4], 2, (2, 2), relu=True, residual=False, eps=1e-5)
    norm([2, 3], 9, (), relu=False, residual=True, eps=1e-5)


def casts():
    """Of numbers that 8 bits hold: the golden test computes in float64, where nothing is rounded."""
    x, gout = ((torch.randn(3, 5) * 8).round() / 8 for _ in range(2))
    for attrs, kind in ("", torch.float32), ("bf16=true", torch.bfloat16), ("f16=true", torch.float16):
        case("cast", attrs, [x], lambda x: {0: x.to(kind).double()}, (0,), gout)
    case("unscale", "", [normal(3, 4), torch.tensor([1024.0])], lambda x, scale: {0: x / scale})


def activations():
    """PyTorch's own gradients of the hard ones have the sixth of float32 in float64 too; so these are written out."""
    functions = {"relu6": F.relu6, "sigmoid": F.sigmoid, "hardsigmoid": lambda x: F.relu6(x + 3) / 6,
                 "hardswish": lambda x: x * F.relu6(x + 3) / 6, "silu": F.silu, "gelu": F.gelu}
    for op, function in functions.items():
        case(op, "", [torch.linspace(-8, 8, 25).round(decimals=3)], lambda x: {0: function(x)}, (0,))


def channels():
    def split(op, attrs, x, function):
        case(op, attrs, [normal(*x)], lambda x: {0: function(x)}, (0,))

    for a, b in ((2, 3, 2, 4), (2, 3, 2, 4)), ((2, 3, 2, 4), (2, 3, 1, 1)), ((2, 3, 2, 4), (3, 1, 1)):
        case("mul", "", [normal(*a), normal(*b)], lambda a, b: {0: a * b}, (0, 1))
    case("concat", "", [normal(2, 3, 2, 2), normal(2, 1, 2, 2), None, None],
         lambda a, b, c, d: {0: torch.cat([a, b], 1)}, (0, 1))
    case("concat", "", [normal(2, k, 2, 1) for k in (2, 1, 3, 4)], lambda *x: {0: torch.cat(x, 1)}, (0, 1, 2, 3))
    split("channel_slice", "first=2 count=3", (2, 6, 2, 2), lambda x: x[:, 2:5])
    split("channel_shuffle", "groups=2", (2, 6, 1, 2), torch.nn.ChannelShuffle(2))
    split("channel_shuffle", "groups=3", (1, 12, 2, 1), torch.nn.ChannelShuffle(3))


def norms():
    case("vector_norm", "", [torch.tensor([[3.0, -4.0, 12.0], [0.5, 0.25, -7.0]])], lambda x: {0: x.norm().reshape(1)})


def stochastic_depth():
    seed, step, first, p, operator = 77, 3, 6, 0.4, 5
    key = splitmix64(seed ^ (4 << 56))  # 4: the use "dropout"
    kept = [philox((key & 0xFFFFFFFF, key >> 32), (n // 4, operator, step, 0))[n % 4] >= p * 2**32
            for n in range(first, first + 7)]
    mask = torch.tensor(kept).double().reshape(7, 1, 1) / (1 - p)
    case("dropout", f"p={p} id={operator} per_image=true", [normal(7, 2, 2), torch.tensor([seed, step, first])],
         lambda x, r: {0: x * mask}, (0,))


def more_optimizers():
    adam, rmsprop = ["exp_avg", "exp_avg_sq"], ["square_avg", "momentum_buffer"]
    optimizer("adam", "", 0.01, adam, lambda p: torch.optim.Adam(p, 0.01))
    optimizer("adam", "beta1=0.8 beta2=0.95 eps=0.001 weight_decay=0.1", 0.02, adam,
              lambda p: torch.optim.Adam(p, 0.02, betas=(0.8, 0.95), eps=0.001, weight_decay=0.1))
    optimizer("rmsprop", "momentum=0.9 weight_decay=0.01", 0.02, rmsprop,
              lambda p: torch.optim.RMSprop(p, 0.02, alpha=0.9, eps=0.0316, momentum=0.9, weight_decay=0.01))
    optimizer("rmsprop", "alpha=0.99 eps=1e-8", 0.01, rmsprop, lambda p: torch.optim.RMSprop(p, 0.01))


class Lars(torch.optim.Optimizer):
    """You et al. 2017; what the paper leaves open as timm has it."""

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad, size, length = p.grad, p.detach().norm(), p.grad.norm()
                if group["weight_decay"] and size > 0 and length > 0:
                    ratio = group["trust"] * size / (length + group["weight_decay"] * size + group["eps"])
                    grad = ratio * (grad + group["weight_decay"] * p.detach())
                buffer = self.state[p].get("momentum_buffer")
                buffer = grad.clone() if buffer is None else group["momentum"] * buffer + grad
                self.state[p]["momentum_buffer"] = buffer
                p.data -= group["lr"] * (grad + group["momentum"] * buffer if group["nesterov"] else buffer)


class Lamb(torch.optim.Optimizer):
    """You et al. 2019; what the paper leaves open as timm has it."""

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                state["n"] = state.get("n", 0) + 1
                state["exp_avg"] = beta1 * state.get("exp_avg", 0) + (1 - beta1) * p.grad
                state["exp_avg_sq"] = beta2 * state.get("exp_avg_sq", 0) + (1 - beta2) * p.grad ** 2
                mean = state["exp_avg"] / (1 - beta1 ** state["n"])
                root = (state["exp_avg_sq"] / (1 - beta2 ** state["n"])).sqrt()
                step = mean / (root + group["eps"]) + group["weight_decay"] * p.detach()
                if group["weight_decay"] and p.detach().norm() > 0 and step.norm() > 0:
                    step *= p.detach().norm() / step.norm()
                p.data -= group["lr"] * step


def adaptive_optimizers():
    def lars(lr, momentum=0.9, weight_decay=0, trust=0.001, eps=1e-8, nesterov=False):
        return lambda params: Lars(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay, trust=trust,
                                                eps=eps, nesterov=nesterov))

    def lamb(lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        return lambda params: Lamb(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    buffer, moments = ["momentum_buffer"], ["exp_avg", "exp_avg_sq"]
    optimizer("lars", "", 0.1, buffer, lars(0.1))
    optimizer("lars", "weight_decay=0.0005 trust_coefficient=0.1", 0.5, buffer, lars(0.5, 0.9, 0.0005, 0.1))
    optimizer("lars", "momentum=0.5 weight_decay=0.1 trust_coefficient=1 eps=0.1 nesterov=true", 0.1, buffer,
              lars(0.1, 0.5, 0.1, 1, 0.1, True))
    optimizer("lamb", "", 0.01, moments, lamb(0.01))
    optimizer("lamb", "beta1=0.8 beta2=0.95 eps=0.001 weight_decay=0.1", 0.02, moments,
              lamb(0.02, (0.8, 0.95), 0.001, 0.1))
    optimizer("lamb", "weight_decay=0", 0.02, moments, lamb(0.02, weight_decay=0))


def layer_norms():
    def norm(eps):
        def function(x, w, b):
            y = F.layer_norm(x.movedim(1, -1), w.shape, w, b, eps).movedim(-1, 1)
            var = x.var(1, unbiased=False)
            return {0: y, 1: x.mean(1), 2: (var + eps) ** -0.5}
        return function

    for shape, eps in ((2, 5, 2, 3), 1e-6), ((4, 3), 1e-5):
        attrs = f"eps={eps:g}" if eps != 1e-5 else ""
        case("layer_norm", attrs, [normal(*shape), normal(shape[1]), normal(shape[1])], norm(eps), (0, 1, 2))


def soft_losses():
    for attrs, smoothing, divisor in ("", 0, 4), ("label_smoothing=0.1", 0.1, 7):
        def outputs(x, t, d):
            each = F.cross_entropy(x, t, reduction="none", label_smoothing=smoothing)
            return {0: (each.sum() / d), 1: each, 2: F.softmax(x, 1)}

        targets = torch.tensor([[0.75, 0, 0.25, 0], [0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4]])
        case("soft_cross_entropy", attrs, [normal(3, 4), targets, torch.tensor([float(divisor)])], outputs, (0,))


def mix_draw(mixup, cutmix, height, width, seed, step):
    """{share, pixels, top, left, bottom, right} of src/ops/mix.c, written out once more."""
    key = splitmix64(seed ^ (7 << 56))  # 7: the use "mix"

    def numbers(position):
        return philox((key & 0xFFFFFFFF, key >> 32), (position, 0, step, 0))

    def above_0(number):
        return (number + 1) / 2**32

    def gamma(alpha, i, u):
        d = alpha + (alpha < 1) - 1 / 3
        for t in range(64):
            a, b, c, _ = numbers(2 + 2 * t + i)
            x = math.sqrt(-2 * math.log(above_0(a))) * math.cos(2 * math.pi * b / 2**32)
            v = (1 + x / math.sqrt(9 * d)) ** 3
            if v > 0 and math.log(above_0(c)) < x * x / 2 + d - d * v + d * math.log(v):
                return d * v * (u ** (1 / alpha) if alpha < 1 else 1)

    which, *u = numbers(0)
    is_cut = cutmix > 0 and (mixup == 0 or which >= 2**31)
    alpha = cutmix if is_cut else mixup
    own, other = (gamma(alpha, i, above_0(u[i])) for i in range(2))
    share = own / (own + other)
    if not is_cut:
        return [share, share, 0, 0, 0, 0]
    box = []
    for size, number in zip((height, width), numbers(1)):
        half, centre = int(0.5 * math.sqrt(1 - share) * size), size * number >> 32
        box.append((max(centre - half, 0), min(centre + half, size)))
    (top, bottom), (left, right) = box
    return [1 - (bottom - top) * (right - left) / (height * width), 1, top, left, bottom, right]


def mixing():
    for step in 3, 4, 5, 6:
        for mixup, cutmix in (0.2, 0), (0, 1), (0.4, 0.8):
            attrs = " ".join([f"mixup_alpha={mixup}"] * (mixup > 0) + [f"cutmix_alpha={cutmix}"] * (cutmix > 0))
            draw = torch.tensor(mix_draw(mixup, cutmix, 32, 40, 12345, step)).float().double()  # as it is stored
            case("mix_draw", f"{attrs} image=32x40", [torch.tensor([12345, step, 7])], lambda r: {0: draw})
    x, labels = normal(3, 2, 4, 5), torch.tensor([2, 0, 3])
    for draw in [0.75, 0.75, 0, 0, 0, 0], [0.7, 1, 1, 0, 4, 2]:
        draw = torch.tensor(draw)
        inside = torch.zeros(4, 5, dtype=torch.bool)
        inside[int(draw[2]) : int(draw[4]), int(draw[3]) : int(draw[5])] = True
        mixed = draw[1] * x + (1 - draw[1]) * x.roll(1, 0)  # as torchvision's MixUp and CutMix do
        case("mix", "", [x, draw], lambda x, d: {0: torch.where(inside, x.roll(1, 0), mixed)})
        one_hot = F.one_hot(labels, 4).double()
        case("mix_targets", "classes=4", [labels, draw],
             lambda y, d: {0: d[0] * one_hot + (1 - d[0]) * one_hot.roll(1, 0)})


print(f"# made by tools/make_golden_ops.py with PyTorch {torch.__version__}, float64")
convolutions()
linears()
batch_norms()
pools()
simple()
losses()
dropouts()
optimizers()
norms_over_shards()
casts()
activations()
channels()
norms()
stochastic_depth()
more_optimizers()
adaptive_optimizers()
layer_norms()
soft_losses()
mixing()
