#!/usr/bin/env python3
"""Writes the golden cases of this folder: small models trained for five steps by PyTorch.

    python3 tests/golden/make_golden.py [FOLDER]     needs numpy, torch and safetensors

The forward pass is written from the definitions of the two architectures with plain tensor
functions (no fused kernels, no library of models), everything in double precision, so that what a
comparison shows is the other side's rounding; `losses_fp32` is the same in single precision, for
scale. AdamW is torch.optim.AdamW with decay on matrices only (embeddings and head included), after
clipping by min(1, limit / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does.

CASE.plan.json          a plan with its model inside
CASE.initial.safetensors    parameters before step 0, under Hugging Face's names
CASE.gradients.safetensors  gradients of step 0, before clipping
CASE.json               loss and gradient norm of each step, and the above by name
tokens.bin              tokens in llm.c's layout; windows are drawn as exec/data.h says
"""
import json
import os
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

STEPS, BATCH, SEQUENCE, VOCABULARY, SEED = 5, 4, 16, 101, 3407
OPTIMIZER = {"learning_rate": 0.005, "schedule": "constant", "beta1": 0.9, "beta2": 0.95,
             "epsilon": 1e-6, "weight_decay": 0.1, "clip_global_norm": 1.0}

# ---- data -----------------------------------------------------------------------------------


def philox(key, counter, stream, step):
    """Philox 4x32-10 (Salmon et al., SC 2011), as base/rng.h."""
    mask = 0xFFFFFFFF
    k = [key & mask, key >> 32]
    c = [counter & mask, counter >> 32, stream, step]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def make_tokens(count=1500):
    """A chain that a model can learn: mostly the token before times 5 plus 7."""
    random = np.random.default_rng(1)
    tokens = [3]
    for _ in range(count - 1):
        follow = random.random() < 0.8
        tokens.append((tokens[-1] * 5 + 7) % VOCABULARY if follow else int(random.integers(VOCABULARY)))
    return np.array(tokens, dtype=np.uint16)


def write_tokens(path, tokens):
    header = np.zeros(256, dtype="<i4")
    header[:3] = 20240520, 1, len(tokens)
    with open(path, "wb") as file:
        file.write(header.tobytes() + tokens.astype("<u2").tobytes())


def batch(tokens, step):
    """Windows of the first nine tenths: exec/data.h, sc_data_sequence."""
    end = len(tokens) // 10 * 9 + len(tokens) % 10 * 9 // 10
    starts = []
    for sequence in range(BATCH):
        words = philox(SEED, sequence, 0xDA7A0001, step)
        starts.append((words[1] << 32 | words[0]) % (end - SEQUENCE))
    windows = np.stack([tokens[s:s + SEQUENCE + 1] for s in starts]).astype(np.int64)
    return torch.tensor(windows[:, :-1]), torch.tensor(windows[:, 1:])


# ---- the two architectures ------------------------------------------------------------------


def layer_norm(x, p, name, epsilon):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon) * p[name + ".weight"] + p[name + ".bias"]


def rms_norm(x, p, name, epsilon):
    return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + epsilon) * p[name + ".weight"]


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x ** 3)))


def causal_attention(q, k, v):
    """q [B, H, T, d], k and v [B, K, T, d]; query head i uses key head i / (H / K)."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    later = torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool), 1)
    weights = torch.softmax(scores.masked_fill(later, -torch.inf), -1)
    return (weights @ v).transpose(1, 2).flatten(2)


def heads(x, size):
    return x.unflatten(-1, (-1, size)).transpose(1, 2)


def rotate(x, theta):
    """Rotary positions, Hugging Face's order: the halves of a head are the pairs."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=x.dtype) * 2 / x.shape[-1])
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * frequency
    cosine, sine = torch.cos(angle), torch.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def gpt2(m, p, tokens):
    def linear(x, name):
        return x @ p[name + ".weight"] + p[name + ".bias"]  # Conv1D: [inputs, outputs]

    x = p["wte.weight"][tokens] + p["wpe.weight"][:tokens.shape[1]]
    for i in range(m["layers"]):
        h = f"h.{i}."
        packed = linear(layer_norm(x, p, h + "ln_1", m["norm_epsilon"]), h + "attn.c_attn")
        q, k, v = (heads(part, m["head_size"]) for part in packed.chunk(3, -1))
        x = x + linear(causal_attention(q, k, v), h + "attn.c_proj")
        up = linear(layer_norm(x, p, h + "ln_2", m["norm_epsilon"]), h + "mlp.c_fc")
        x = x + linear(gelu_tanh(up), h + "mlp.c_proj")
    x = layer_norm(x, p, "ln_f", m["norm_epsilon"])
    return x @ p["wte.weight" if m["tied_head"] else "lm_head.weight"].T


def llama(m, p, tokens):
    def linear(x, name):
        return x @ p[name + ".weight"].T  # Linear: [outputs, inputs]

    x = p["model.embed_tokens.weight"][tokens]
    for i in range(m["layers"]):
        h = f"model.layers.{i}."
        n = rms_norm(x, p, h + "input_layernorm", m["norm_epsilon"])
        q, k, v = (heads(linear(n, h + f"self_attn.{c}_proj"), m["head_size"]) for c in "qkv")
        q, k = rotate(q, m["rope_theta"]), rotate(k, m["rope_theta"])
        x = x + linear(causal_attention(q, k, v), h + "self_attn.o_proj")
        n = rms_norm(x, p, h + "post_attention_layernorm", m["norm_epsilon"])
        gate, up = linear(n, h + "mlp.gate_proj"), linear(n, h + "mlp.up_proj")
        x = x + linear(gate * torch.sigmoid(gate) * up, h + "mlp.down_proj")
    x = rms_norm(x, p, "model.norm", m["norm_epsilon"])
    return linear(x, "model.embed_tokens" if m["tied_head"] else "lm_head")


def gpt2_shapes(m):
    h, f = m["hidden_size"], m["ffn_hidden_size"]
    shapes = {"wte.weight": (m["vocab_size"], h), "wpe.weight": (m["max_positions"], h)}
    for i in range(m["layers"]):
        for name, shape in (("ln_1", (h,)), ("attn.c_attn", (h, 3 * h)), ("attn.c_proj", (h, h)),
                            ("ln_2", (h,)), ("mlp.c_fc", (h, f)), ("mlp.c_proj", (f, h))):
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    shapes |= {"ln_f.weight": (h,), "ln_f.bias": (h,)}
    return shapes


def llama_shapes(m):
    h, f = m["hidden_size"], m["ffn_hidden_size"]
    q, kv = m["attention_heads"] * m["head_size"], m["key_value_heads"] * m["head_size"]
    shapes = {"model.embed_tokens.weight": (m["vocab_size"], h)}
    for i in range(m["layers"]):
        for name, shape in (("input_layernorm", (h,)), ("self_attn.q_proj", (q, h)),
                            ("self_attn.k_proj", (kv, h)), ("self_attn.v_proj", (kv, h)),
                            ("self_attn.o_proj", (h, q)), ("post_attention_layernorm", (h,)),
                            ("mlp.gate_proj", (f, h)), ("mlp.up_proj", (f, h)),
                            ("mlp.down_proj", (h, f))):
            shapes[f"model.layers.{i}.{name}.weight"] = shape
    return shapes | {"model.norm.weight": (h,)}


FAMILIES = {"gpt2": (gpt2, gpt2_shapes), "llama": (llama, llama_shapes)}


def initial(m):
    """Larger than a real initialisation, so that every part of the model matters to the loss."""
    shapes = FAMILIES[m["family"]][1](m)
    if not m["tied_head"]:
        shapes["lm_head.weight"] = (m["vocab_size"], m["hidden_size"])
    random = np.random.default_rng(2)
    parameters = {}
    for name, shape in shapes.items():
        values = random.standard_normal(shape) * (0.15 if len(shape) == 2 else 0.1)
        is_gain = len(shape) == 1 and name.endswith(".weight")
        parameters[name] = (values + is_gain).astype(np.float32)
    return parameters


# ---- training -------------------------------------------------------------------------------


def train(m, parameters, tokens, dtype):
    p = {name: torch.tensor(value, dtype=dtype).requires_grad_() for name, value in parameters.items()}
    o = OPTIMIZER
    groups = [{"params": [v for v in p.values() if v.ndim == 2], "weight_decay": o["weight_decay"]},
              {"params": [v for v in p.values() if v.ndim == 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]),
                              eps=o["epsilon"])
    losses, norms, gradients = [], [], None
    for step in range(STEPS):
        index, target = batch(tokens, step)
        logits = FAMILIES[m["family"]][0](m, p, index)
        loss = -torch.log_softmax(logits, -1).gather(-1, target[..., None]).mean()
        adamw.zero_grad()
        loss.backward()
        norm = torch.sqrt(sum((v.grad ** 2).sum() for v in p.values()))
        if gradients is None:
            gradients = {name: v.grad.numpy().astype(np.float32) for name, v in p.items()}
        for v in p.values():
            v.grad *= min(1.0, o["clip_global_norm"] / (float(norm) + 1e-6))
        adamw.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, gradients


def model(name, family, tied, heads_, kv, head, ffn):
    gpt = family == "gpt2"
    return {"schema": "stepcast.model/1", "name": name, "family": family, "layers": 2,
            "hidden_size": 32, "attention_heads": heads_, "key_value_heads": kv, "head_size": head,
            "ffn_hidden_size": ffn, "vocab_size": VOCABULARY, "max_positions": 24,
            "norm": "layer_norm" if gpt else "rms_norm", "norm_epsilon": 1e-5 if gpt else 1e-6,
            "activation": "gelu_tanh" if gpt else "swiglu",
            "position": "learned" if gpt else "rotary", **({} if gpt else {"rope_theta": 10000.0}),
            "biases": gpt, "tied_head": tied}


CASES = [model("gpt2-tied", "gpt2", True, 4, 4, 8, 128),
         model("gpt2-untied", "gpt2", False, 2, 2, 16, 64),
         model("llama-tied", "llama", True, 4, 2, 12, 48),
         model("llama-untied", "llama", False, 4, 2, 8, 88)]


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.set_num_threads(1)
    tokens = make_tokens()
    write_tokens(os.path.join(folder, "tokens.bin"), tokens)
    for m in CASES:
        name = m["name"]
        parameters = initial(m)
        losses, norms, gradients = train(m, parameters, tokens, torch.float64)
        losses_fp32, _, _ = train(m, parameters, tokens, torch.float32)
        save_file(parameters, os.path.join(folder, name + ".initial.safetensors"))
        save_file(gradients, os.path.join(folder, name + ".gradients.safetensors"))
        write_json(os.path.join(folder, name + ".plan.json"), {
            "schema": "stepcast.plan/1", "name": "golden-" + name, "model": m,
            "hardware": {"profile": "two-cores", "nodes": 1},
            "batch": {"global_batch": BATCH, "micro_batch": BATCH, "sequence_length": SEQUENCE},
            "optimizer": OPTIMIZER, "seed": SEED})
        write_json(os.path.join(folder, name + ".json"), {
            "plan": name + ".plan.json", "tokens": "tokens.bin",
            "initial": name + ".initial.safetensors",
            "gradients": name + ".gradients.safetensors",
            "losses": losses, "losses_fp32": losses_fp32, "gradient_norms": norms})
        print(name, losses, max(abs(a / b - 1) for a, b in zip(losses, losses_fp32)), norms)


if __name__ == "__main__":
    main()
