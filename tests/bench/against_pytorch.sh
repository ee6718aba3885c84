#!/bin/sh
# Step time of `stepcast run` against PyTorch's best, on this machine, same model, data and losses.
#
#   tests/bench/against_pytorch.sh STEPCAST [PLAN [ROUNDS [MODE]]]
#
# PLAN is a file; without one, the shipped plans of GPT-2 124M and of a Llama of that size, one by
# one. MODE (eager+fused, compile+fused, ...) says which of PyTorch's ways is its best here;
# else each is tried first.
#
# Rounds alternate between the two, so that both see the same machine; the ratio is PyTorch's median
# over rounds divided by ours: above 1 is faster than PyTorch. Needs python3 with torch, numpy,
# safetensors. Exits with 1 where a loss differs by more than 1e-5 of itself (rotary positions left
# out, say, change the first loss by 6e-5; rounding by 1e-6).
set -eu

here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
stepcast=${1:?usage: against_pytorch.sh STEPCAST [PLAN [ROUNDS [MODE]]]}
rounds=${3:-3}
mode=${4:-}
steps=10
warmup=2

if [ -z "${2:-}" ]; then
    failed=0
    for name in gpt2-124m_host_1rank llama-124m_host_1rank; do
        "$0" "$stepcast" "$here/../../plans/shipped/$name.json" || failed=1
    done
    exit "$failed"
fi
plan=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
step=$here/pytorch_step.py

python3 "$step" --plan "$plan" --make "$folder"
set -- --plan "$plan" --init "$folder/initial.safetensors" --data "$folder/tokens.bin"
if [ -z "$mode" ]; then
    python3 "$step" "$@" --steps 1 --warmup 0 >"$folder/mode.json"
    mode=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["mode"])' \
        "$folder/mode.json")
fi
echo "$(basename "$plan" .json), PyTorch: $mode"

round=1
while [ "$round" -le "$rounds" ]; do
    "$stepcast" run "$plan" --init "$folder/initial.safetensors" --data "$folder/tokens.bin" \
        --steps "$steps" --warmup "$warmup" --json >"$folder/ours.$round.json"
    python3 "$step" "$@" --steps "$steps" --warmup "$warmup" --mode "$mode" \
        >"$folder/theirs.$round.json"
    round=$((round + 1))
done

python3 - "$folder" "$rounds" <<'END'
import json
import statistics
import sys

folder, rounds = sys.argv[1], int(sys.argv[2])


def read(name):
    runs = []
    for i in range(1, rounds + 1):
        with open(f"{folder}/{name}.{i}.json", encoding="utf-8") as file:
            runs.append(json.load(file))
    return runs


ours, theirs = read("ours"), read("theirs")
times = [[1e3 * run["step_time_s"] for run in runs] for runs in (ours, theirs)]
for name, values in zip(("stepcast", "PyTorch"), times):
    print(f"{name:10}", *(f"{value:9.1f}" for value in values), " ms a step, each round")
ratio = statistics.median(times[1]) / statistics.median(times[0])
print(f"speed against PyTorch (its time / ours): {ratio:.3f}")
worst = 0.0
for i, (a, b) in enumerate(zip(ours[0]["losses"], theirs[0]["losses"])):
    worst = max(worst, abs(a / b - 1))
    print(f"step {i:2}  loss {a:.6f}  {b:.6f}  {a / b - 1:+.1e}")
print(f"largest difference of a loss: {worst:.1e}")
sys.exit(worst > 1e-5)
END
