#!/usr/bin/env python3
"""Times a training step of GPT-2 in PyTorch on the processor, for comparison with `stepcast run`.

    pytorch_step.py --make FOLDER             writes FOLDER/initial.safetensors and tokens.bin
    pytorch_step.py --plan PLAN --init FILE --data FILE [--steps N] [--warmup N] [--mode MODE]

The same work as the plan: its model (a shipped name or the object), batch, fp32, AdamW with decay
on matrices, clipping, schedule, one process with all cores, the windows of exec/data.h. Each part
is PyTorch's fastest: fused layer norm, GELU and attention, AdamW fused or foreach, eager or
torch.compile (MODE best: whichever of both is faster). Prints one JSON object: mode, step_time_s
(median), steps, losses.
"""
import argparse
import json
import math
import os
import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file, save_file

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "golden"))
import make_golden  # noqa: E402

NEUTRAL = {"learning_rate": 1e-3, "minimum_learning_rate": 0.0, "schedule": "constant",
           "warmup_steps": 0, "decay_steps": 0, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
           "weight_decay": 0.01, "clip_global_norm": 0.0}


def read_plan(path):
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    if isinstance(plan["model"], str):
        shipped = os.path.join(SOURCE, "model", "shipped", plan["model"] + ".json")
        with open(shipped, encoding="utf-8") as file:
            plan["model"] = json.load(file)
    plan["optimizer"] = NEUTRAL | plan.get("optimizer", {})
    return plan


def make(folder, plan):
    """GPT-2's initialisation, and tokens that a model can learn a little from."""
    os.makedirs(folder, exist_ok=True)
    model, random = plan["model"], np.random.default_rng(2)
    residual = 0.02 / math.sqrt(2 * model["layers"])
    parameters = {}
    for name, shape in make_golden.gpt2_shapes(model).items():
        if len(shape) == 1:
            values = np.full(shape, 1.0 if name.endswith("weight") else 0.0)
        else:
            values = random.standard_normal(shape) * (residual if "c_proj" in name else 0.02)
        parameters[name] = values.astype(np.float32)
    save_file(parameters, os.path.join(folder, "initial.safetensors"))
    tokens = np.cumsum(random.integers(1, 60, 200000)) % model["vocab_size"]
    make_golden.write_tokens(os.path.join(folder, "tokens.bin"), tokens)


def read_tokens(path):
    header = np.fromfile(path, dtype="<i4", count=256)
    if header[0] != 20240520:
        sys.exit(f"{path}: found no uint16 token file of llm.c's layout")
    return np.fromfile(path, dtype="<u2", offset=1024, count=int(header[2]))


def batch(plan, tokens, step):
    sequence, count = plan["batch"]["sequence_length"], plan["batch"]["global_batch"]
    end = len(tokens) // 10 * 9 + len(tokens) % 10 * 9 // 10
    windows = []
    for i in range(count):
        words = make_golden.philox(plan["seed"], i, 0xDA7A0001, step)
        start = (words[1] << 32 | words[0]) % (end - sequence)
        windows.append(tokens[start:start + sequence + 1].astype(np.int64))
    windows = torch.tensor(np.stack(windows))
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def loss_of(p, m, index, target):
    h, size, epsilon = m["hidden_size"], m["head_size"], m["norm_epsilon"]
    # Conv1D weights are [inputs, outputs]; stored as Linear's [outputs, inputs] here.
    x = F.embedding(index, p["wte.weight"]) + p["wpe.weight"][:index.shape[1]]
    for i in range(m["layers"]):
        def w(name):
            return p[f"h.{i}.{name}.weight"], p[f"h.{i}.{name}.bias"]
        qkv = F.linear(F.layer_norm(x, (h,), *w("ln_1"), epsilon), *w("attn.c_attn"))
        q, k, v = (t.unflatten(-1, (-1, size)).transpose(1, 2) for t in qkv.split(h, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(a.transpose(1, 2).flatten(2), *w("attn.c_proj"))
        up = F.linear(F.layer_norm(x, (h,), *w("ln_2"), epsilon), *w("mlp.c_fc"))
        x = x + F.linear(F.gelu(up, approximate="tanh"), *w("mlp.c_proj"))
    x = F.layer_norm(x, (h,), p["ln_f.weight"], p["ln_f.bias"], epsilon)
    logits = F.linear(x, p["wte.weight"])
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


def learning_rate(o, done):
    """As the executor's `scalar advance` has it (exec/host/host_ops_step.c)."""
    top, least = o["learning_rate"], o["minimum_learning_rate"]
    warmup, decay = o["warmup_steps"], o["decay_steps"]
    if warmup > 0 and done <= warmup:
        return top * done / warmup
    if o["schedule"] == "constant":
        return top
    if done > decay or decay <= warmup:
        return least
    ratio = (done - warmup) / (decay - warmup)
    share = 1 - ratio if o["schedule"] == "linear" else 0.5 * (math.cos(math.pi * ratio) + 1)
    return least + share * (top - least)


def load(path):
    """Products as Linear has them: that is the layout in which PyTorch multiplies fastest."""
    parameters = {}
    for name, value in load_file(path).items():
        turned = value.ndim == 2 and name not in ("wte.weight", "wpe.weight", "lm_head.weight")
        value = np.ascontiguousarray(value.T) if turned else value
        parameters[name] = torch.tensor(value).requires_grad_()
    return parameters


def train(plan, init, tokens, mode, kind, steps):
    """Losses and seconds of `steps` steps."""
    m, o = plan["model"], plan["optimizer"]
    p = load(init)
    groups = [{"params": [v for v in p.values() if v.ndim == 2], "weight_decay": o["weight_decay"]},
              {"params": [v for v in p.values() if v.ndim == 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]),
                              eps=o["epsilon"], **{kind: True})
    forward = torch.compile(loss_of) if mode == "compile" else loss_of
    losses, seconds = [], []
    for step in range(steps):
        index, target = batch(plan, tokens, step)
        begin = time.perf_counter()
        for group in adamw.param_groups:
            group["lr"] = learning_rate(o, step)
        loss = forward(p, m, index, target)
        loss.backward()
        if o["clip_global_norm"] > 0:
            torch.nn.utils.clip_grad_norm_(p.values(), o["clip_global_norm"])
        adamw.step()
        adamw.zero_grad()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    return losses, seconds


def fastest(plan, init, tokens):
    """(mode, optimizer) of the shortest median over three steps behind two."""
    found = {}
    for mode in ("eager", "compile"):
        for kind in ("fused", "foreach"):
            try:
                _, seconds = train(plan, init, tokens, mode, kind, 5)
            except Exception as error:  # a mode that this build of PyTorch lacks
                print(f"{mode}, {kind}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            found[mode, kind] = statistics.median(seconds[2:])
            print(f"{mode}, {kind}: {1e3 * found[mode, kind]:.1f} ms", file=sys.stderr)
    return min(found, key=found.get)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan", default=os.path.join(SOURCE, "plans", "shipped",
                                                       "gpt2-124m_host_1rank.json"))
    parser.add_argument("--make", metavar="FOLDER")
    parser.add_argument("--init")
    parser.add_argument("--data")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--mode", default="best", help="best, or eager+fused, compile+foreach, ...")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    plan = read_plan(args.plan)
    if args.make:
        make(args.make, plan)
        return
    if not args.init or not args.data:
        parser.error("--init and --data are needed")
    tokens = read_tokens(args.data)
    mode, kind = (fastest(plan, args.init, tokens) if args.mode == "best"
                  else tuple(args.mode.split("+")))
    losses, seconds = train(plan, args.init, tokens, mode, kind, args.warmup + args.steps)
    seconds = seconds[args.warmup:]
    print(json.dumps({"mode": f"{mode}+{kind}", "threads": args.threads,
                      "torch": torch.__version__, "step_time_s": statistics.median(seconds),
                      "steps": seconds, "losses": losses}))


if __name__ == "__main__":
    main()
