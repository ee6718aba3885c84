#!/usr/bin/env bash
# The whole path on this machine: builds stepcast, calibrates, searches plans for a small GPT and a
# small Llama on two ranks, forecasts and runs several of them for real, and compares. Leaves
# demo-out/ and ends with a table. `--train` instead trains on a text file of this machine and says
# how far the loss on its held-out tenth falls.
#
#   DEMO_OUT   where to leave plans, traces and figures   (demo-out)
#   BUILD_DIR  where to build                             (build)
#   STEPCAST_INSTALL  0: install nothing; minimal: without MPI (1)
set -euo pipefail
cd "$(dirname "$0")/.."

out=${DEMO_OUT:-demo-out}
build=${BUILD_DIR:-build}
train=0
case "${1:-}" in
--train) train=1 ;;
"") ;;
*)
    echo "usage: scripts/demo.sh [--train]" >&2
    exit 2
    ;;
esac

say() { printf '\n== %s\n' "$*"; }

say "building"
case "${STEPCAST_INSTALL:-1}" in
0) ;;
minimal) scripts/install_deps.sh --minimal ;;
*) scripts/install_deps.sh ;;
esac
generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
# shellcheck disable=SC2086  # CMAKE_ARGS is a list of words
cmake -S . -B "$build" ${generator[@]+"${generator[@]}"} -DCMAKE_BUILD_TYPE=Release \
    ${CMAKE_ARGS:-} >/dev/null
cmake --build "$build" --parallel "$(nproc)" --target stepcast >/dev/null
stepcast=$build/stepcast
mkdir -p "$out"

if [ "$train" = 1 ]; then
    text=LICENSE
    for candidate in /usr/share/common-licenses/GPL-3 /usr/share/common-licenses/GPL-2; do
        [ ! -r "$candidate" ] || { text=$candidate && break; }
    done
    say "training a small GPT on the bytes of $text: 300 steps, two ranks, Domino"
    common=(host_tiny-gpt_2ranks_tp2_domino2 --data "$text"
        --set batch.sequence_length=64 --set batch.global_batch=16 --set batch.micro_batch=16
        --set optimizer.learning_rate=1e-3 --set optimizer.warmup_steps=20)
    "$stepcast" run "${common[@]}" --warmup 0 --steps 300 --save "$out/trained.safetensors"
    say "its held-out tenth, which training never read"
    "$stepcast" run "${common[@]}" --evaluate --init "$out/trained.safetensors" |
        tee "$out/held-out.txt"
    # The model must know more of the text than how often each byte occurs.
    awk '{
        for (i = 1; i < NF; i++) {
            if ($i == "loss") loss = $(i + 1) + 0
            if ($i == "entropy") entropy = $(i + 1) + 0
        }
    }
    END { exit !(loss > 0 && loss < entropy) }' "$out/held-out.txt"
    exit
fi

rm -rf "$out/plans" "$out/traces" "$out/figures"
mkdir -p "$out/plans" "$out/traces" "$out/figures"
say "calibrating this machine (about a minute)"
"$stepcast" calibrate --out "$out/this-machine.json"

# The plan that the search finds fastest, and others spread over its ranking.
plans=()
for model in tiny-gpt tiny-llama; do
    say "searching plans for $model on 2 ranks"
    "$stepcast" search --model "$model" --hw "$out/this-machine.json" --gpus 2 \
        --global-batch 8 --sequence-length 128 --top 1000 --out "$out/plans/$model" \
        >"$out/plans/$model.txt"
    head -n 7 "$out/plans/$model.txt"
    ranked=("$out/plans/$model"/*.json) # their names begin with their rank
    last=$((${#ranked[@]} - 1))
    for at in 0 $((last / 5)) $((last * 2 / 5)) $((last * 3 / 5)); do
        plans+=("${ranked[$at]}")
    done
done

say "forecasting and running ${#plans[@]} plans"
traces=()
for plan in "${plans[@]}"; do
    name=$(basename "$plan" .json)
    "$stepcast" sim "$plan" --hw "$out/this-machine.json" --trace "$out/traces/$name.predicted.json" \
        >/dev/null
    "$stepcast" run "$plan" --warmup 3 --steps 15 --trace "$out/traces/$name.measured.json" \
        >"$out/traces/$name.txt"
    traces+=("$out/traces/$name.predicted.json" "$out/traces/$name.measured.json")
    echo "  $name"
    sed -n 's/^Warning/    Warning/p' "$out/traces/$name.txt"
done

say "comparing"
"$stepcast" compare "${traces[@]}" --figures "$out/figures" >"$out/comparison.txt"
for model in tiny-gpt tiny-llama; do
    printf '%s: ' "$model"
    "$stepcast" compare "$out"/traces/*_"$model"_*.json | tail -n 1
done
echo
sed -n '/^Step time/,/^$/p' "$out/comparison.txt"
tail -n 1 "$out/comparison.txt"
cat <<EOF

Where to look:
  $out/figures/        step times, kinds and timelines, PNG and SVG
  $out/comparison.txt  the comparison by kind of operation, and the largest differences
  $out/plans/          every plan that was searched, best first
  $out/traces/         forecast and measurement of each plan, row by row
EOF
