#!/usr/bin/env bash
# Nothing of ours reads what was not written, writes beyond an allocation or loses one: a forecast, a
# search and a run with two ranks under valgrind's memcheck, on a model of one layer.
#
#   tests/support/memcheck.sh STEPCAST    exit 77 (skipped) without valgrind
set -euo pipefail

stepcast=$(realpath "$1")
logs=$(realpath "$(dirname "$0")")/../data/nccl-tests
command -v valgrind >/dev/null || {
    echo "valgrind is not installed: not checked"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >model.json <<'END'
{
  "schema": "stepcast.model/1", "name": "one-layer", "family": "gpt2", "layers": 1,
  "hidden_size": 32, "attention_heads": 4, "key_value_heads": 4, "head_size": 8,
  "ffn_hidden_size": 64, "vocab_size": 100, "max_positions": 16, "norm": "layer_norm",
  "norm_epsilon": 1e-5, "activation": "gelu_tanh", "position": "learned", "biases": true,
  "tied_head": true
}
END

# Products in plain C: a library's own tricks are not what is checked. Libraries keep what they
# allocate once; only what nobody can reach any more is a leak.
export STEPCAST_GEMM=plain
check() {
    echo "stepcast $*"
    valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --fair-sched=yes "$stepcast" "$@" >output || {
        echo "exit $?"
        return 1
    }
}

one=(--set "model=$folder/model.json" --set batch.sequence_length=8)
check sim host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1 "${one[@]}" --trace forecast.json
check explain host_tiny-gpt_4ranks_tp2_dp2_domino2_zero1 "${one[@]}"
check explain host_tiny-gpt_2ranks_tp2 "${one[@]}" --json
check search --model model.json --hw two-cores --gpus 2 --global-batch 4 --sequence-length 8 --top 2
check run host_tiny-gpt_2ranks_tp2_domino2 "${one[@]}" --steps 2 --warmup 0 --save saved \
    --trace measured.json --set dropout.hidden=0.1
check run host_tiny-gpt_2ranks_dp2_zero1 "${one[@]}" --steps 1 --warmup 0 --init saved
check import nccl-tests "$logs/made_two_collectives.txt"
check compare forecast.json measured.json
