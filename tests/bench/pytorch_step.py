#!/usr/bin/env python3
"""Times a training step of GPT-2 or Llama in PyTorch on the processor, against `stepcast run`.

    pytorch_step.py --make FOLDER             writes FOLDER/initial.safetensors and tokens.bin
    pytorch_step.py --plan PLAN --init FILE --data FILE [--steps N] [--warmup N] [--mode MODE]

The same work as the plan: its model (a shipped name or the object), batch, fp32, AdamW with decay
on matrices, clipping, schedule, one process with all cores, the windows of exec/data.h. Each part
is PyTorch's fastest: fused norm, activation and attention, one product for the projections that
read the same rows, AdamW fused or foreach, eager or torch.compile (MODE best: whichever of both is
faster). Prints one JSON object: mode, step_time_s (median), steps, losses.
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
    """GPT-2's initialisation, and tokens of a small part of the vocabulary: that alone is learnt in
    a dozen steps, so that the losses show whether the updates agree."""
    os.makedirs(folder, exist_ok=True)
    model, random = plan["model"], np.random.default_rng(2)
    shapes = make_golden.FAMILIES[model["family"]][1](model)
    if not model["tied_head"]:
        shapes["lm_head.weight"] = (model["vocab_size"], model["hidden_size"])
    residual = 0.02 / math.sqrt(2 * model["layers"])
    parameters = {}
    for name, shape in shapes.items():
        if len(shape) == 1:
            values = np.full(shape, 1.0 if name.endswith("weight") else 0.0)
        else:
            ends_branch = any(part in name for part in ("c_proj", "o_proj", "down_proj"))
            values = random.standard_normal(shape) * (residual if ends_branch else 0.02)
        parameters[name] = values.astype(np.float32)
    save_file(parameters, os.path.join(folder, "initial.safetensors"))
    tokens = np.cumsum(random.integers(1, 60, 200000)) % min(500, model["vocab_size"])
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


def attention(q, k, v):
    """[batch, heads, sequence, size] each. Repeating grouped heads is faster than enable_gqa."""
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return a.transpose(1, 2).flatten(2)


def gpt2(p, m, index, _):
    h, size, epsilon = m["hidden_size"], m["head_size"], m["norm_epsilon"]
    # Conv1D weights are [inputs, outputs]; stored as Linear's [outputs, inputs] here.
    x = F.embedding(index, p["wte.weight"]) + p["wpe.weight"][:index.shape[1]]
    for i in range(m["layers"]):
        def w(name):
            return p[f"h.{i}.{name}.weight"], p[f"h.{i}.{name}.bias"]
        qkv = F.linear(F.layer_norm(x, (h,), *w("ln_1"), epsilon), *w("attn.c_attn"))
        a = attention(*(make_golden.heads(t, size) for t in qkv.split(h, -1)))
        x = x + F.linear(a, *w("attn.c_proj"))
        up = F.linear(F.layer_norm(x, (h,), *w("ln_2"), epsilon), *w("mlp.c_fc"))
        x = x + F.linear(F.gelu(up, approximate="tanh"), *w("mlp.c_proj"))
    x = F.layer_norm(x, (h,), p["ln_f.weight"], p["ln_f.bias"], epsilon)
    return F.linear(x, p["wte.weight" if m["tied_head"] else "lm_head.weight"])


def angles(m, length):
    """Cosines and sines of rotary positions, made once; their formula is make_golden.rotate's."""
    if m["position"] != "rotary":
        return None
    half = m["head_size"] // 2
    power = -torch.arange(half, dtype=torch.float64) * 2 / m["head_size"]
    angle = torch.arange(length)[:, None] * (m["rope_theta"] ** power).float()
    return torch.cos(angle), torch.sin(angle)


def rotate(x, cosine, sine):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def llama(p, m, index, turn):
    h, size, epsilon = m["hidden_size"], m["head_size"], m["norm_epsilon"]
    sizes = [size * m[kind] for kind in ("attention_heads", "key_value_heads", "key_value_heads")]
    x = F.embedding(index, p["model.embed_tokens.weight"])
    for i in range(m["layers"]):
        def w(name):
            return p[f"model.layers.{i}.{name}.weight"]
        n = F.rms_norm(x, (h,), w("input_layernorm"), epsilon)
        q, k, v = (make_golden.heads(t, size)
                   for t in F.linear(n, w("self_attn.qkv_proj")).split(sizes, -1))
        a = attention(rotate(q, *turn), rotate(k, *turn), v)
        x = x + F.linear(a, w("self_attn.o_proj"))
        n = F.rms_norm(x, (h,), w("post_attention_layernorm"), epsilon)
        gate, up = F.linear(n, w("mlp.gate_up_proj")).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, w("mlp.down_proj"))
    x = F.rms_norm(x, (h,), p["model.norm.weight"], epsilon)
    return F.linear(x, p["model.embed_tokens.weight" if m["tied_head"] else "lm_head.weight"])


FAMILIES = {"gpt2": gpt2, "llama": llama}


def loss_of(p, m, turn, index, target):
    logits = FAMILIES[m["family"]](p, m, index, turn)
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


PACKED = {"self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
          "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj")}


def pack(parameters):
    """Weights that multiply the same rows, one below the other: a single product is faster."""
    for name in list(parameters):
        for packed, parts in PACKED.items():
            if parts[0] in name:
                parameters[name.replace(parts[0], packed)] = np.concatenate(
                    [parameters.pop(name.replace(parts[0], part)) for part in parts])


def load(path, family):
    """Products as Linear has them: that is the layout in which PyTorch multiplies fastest."""
    parameters = load_file(path)
    pack(parameters)
    for name, value in parameters.items():
        turned = (family == "gpt2" and value.ndim == 2
                  and name not in ("wte.weight", "wpe.weight", "lm_head.weight"))
        value = np.ascontiguousarray(value.T) if turned else value
        parameters[name] = torch.tensor(value).requires_grad_()
    return parameters


def train(plan, init, tokens, mode, kind, steps):
    """Losses and seconds of `steps` steps."""
    m, o = plan["model"], plan["optimizer"]
    p = load(init, m["family"])
    groups = [{"params": [v for v in p.values() if v.ndim == 2], "weight_decay": o["weight_decay"]},
              {"params": [v for v in p.values() if v.ndim == 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]),
                              eps=o["epsilon"], **{kind: True})
    turn = angles(m, plan["batch"]["sequence_length"])
    forward = torch.compile(loss_of) if mode == "compile" else loss_of
    losses, seconds = [], []
    for step in range(steps):
        index, target = batch(plan, tokens, step)
        begin = time.perf_counter()
        for group in adamw.param_groups:
            group["lr"] = learning_rate(o, step)
        loss = forward(p, m, turn, index, target)
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
