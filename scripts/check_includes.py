#!/usr/bin/env python3
"""Do the includes obey the rule of one direction?

    cli -> reports -> {sim, exec} -> plans -> model -> base

sim and exec never include each other; the host and the CUDA backend neither; kernels, which two
compilers take, use base and what lies beside them. Libraries that belong to one place stay there.
Neither sim nor exec may ask which technique is in use: of a plan's sections, those of techniques
are for lowering only (and for the search, which writes plans).

Before the tree, the rules are tried on a few includes that are wrong.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# What a folder may include besides itself.
LAYERS = {
    "base": set(),
    "model": {"base"},
    "plans": {"model", "base"},
    "sim": {"plans", "model", "base"},
    "exec": {"plans", "model", "base"},
    "reports": {"sim", "exec", "plans", "model", "base"},
    "cli": {"reports", "sim", "exec", "plans", "model", "base"},
}
SUBFOLDERS_APART = [("exec/host/", "exec/cuda/"), ("exec/cuda/", "exec/host/"),
                    ("exec/kernels/", "exec/host/"), ("exec/kernels/", "exec/cuda/")]
# Header (a prefix) -> the only files that may include it.
LIBRARIES = {
    "gsl/": r"(model/fit|sim/sensitivity)[^/]*\.c$",
    "mpi.h": r"(exec/host|tests/[a-z]+)/[^/]*mpi[^/]*\.[ch]$",
    "cuda": r"(exec/(cuda|kernels)|tests/standin)/",
    "nccl.h": r"(exec/cuda|tests/standin)/",
    "cublasLt.h": r"(exec/cuda|tests/standin)/",
    "cblas.h": r"(exec|tests)/",
    "dnnl.h": r"exec/",
    "cmocka.h": r"tests/",
}
TECHNIQUE = re.compile(
    r"\b(plan|out|one|reference|neutral)(->|\.)(zero|domino|pipeline|offload|recompute)\b"
    r"|(->|\.)(domino|offload|recompute)\b"
)
ASKS_NOT = re.compile(r"(sim/(?!search)|exec/)")


def fault(path, quote, target):
    """What is wrong with one include of the file `path`, or None."""
    for header, allowed in LIBRARIES.items():
        if quote == "<" and target.startswith(header) and not re.match(allowed, path):
            return f"<{target}> does not belong here"
    if quote == "<":
        return None
    folder, other = path.split("/")[0], target.split("/")[0]
    if "/" in target and not target.startswith("..") and folder in LAYERS:
        if other in LAYERS and other != folder and other not in LAYERS[folder]:
            return f'"{target}": {folder} must not include {other}'
        if other == "tests":
            return f'"{target}": only tests include tests'
    for mine, theirs in SUBFOLDERS_APART:
        if path.startswith(mine) and target.startswith(theirs):
            return f'"{target}": {mine} must not include {theirs}'
    if not os.path.exists(os.path.join(ROOT, target)):
        return f'"{target}" is not a path from the root of the tree'
    return None


def sources():
    for folder in list(LAYERS) + ["tests"]:
        for where, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(where, name), ROOT)


def check(path):
    faults = []
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            what = fault(path, match[1], match[2]) if match else None
            if what:
                faults.append(f"{path}:{number}: {what}")
            if ASKS_NOT.match(path) and TECHNIQUE.search(line):
                faults.append(f"{path}:{number}: asks which technique is in use")
    return faults


def self_test():
    wrong = [("sim/a.c", '"', "exec/backend.h"), ("exec/a.c", '"', "sim/price.h"),
             ("base/a.c", '"', "model/dtype.h"), ("plans/a.c", '"', "reports/table.h"),
             ("exec/host/a.c", '"', "exec/cuda/b.h"), ("sim/a.c", "<", "mpi.h"),
             ("model/a.c", "<", "gsl/gsl_fit.h"), ("model/a.c", '"', "base/nowhere.h")]
    right = [("sim/a.c", '"', "base/status.h"), ("base/a.c", "<", "stdio.h"),
             ("exec/host/transport_mpi.c", "<", "mpi.h"), ("model/fit.c", "<", "gsl/gsl_fit.h")]
    return ([f"not noticed: {case}" for case in wrong if fault(*case) is None] +
            [f"wrongly refused: {case}" for case in right if fault(*case) is not None])


def main():
    faults = self_test()
    for path in sources():
        faults += check(path)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
