#!/usr/bin/env bash
# How good are forecasts on this machine? Calibrates it, forecasts every plan of a list, runs each
# for real, several times in rounds over the list (so that a slow minute does not hit one plan
# alone), and compares: errors, regret and order within groups of comparable plans, errors by kind,
# how often the forecast's interval held. A plan's measured time is the median over the rounds of
# the median of their steps. Nothing else may run meanwhile; about ten minutes for the whole list.
#
#   scripts/forecast_vs_run.sh [--json] [--hw PROFILE] [--plans GLOB] [--rounds N] [--out DIR]
#                              [--seconds S] [--list FILE]
#
#   --json    one object and nothing else on standard output (as `stepcast compare --json`)
#   --hw      this profile instead of calibrating
#   --plans   only plans whose names match                    (*)
#   --rounds  runs of each plan                               (5)
#   --seconds how long the steps of a run take, about; three at least (1.5)
#   --out     where to leave profile, traces and comparison   (nowhere)
#   --list    plans and their groups                          (tests/bench/forecast_vs_run/plans.json)
#   STEPCAST  the program                                     (build/stepcast)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

stepcast=${STEPCAST:-$root/build/stepcast}
list=$root/tests/bench/forecast_vs_run/plans.json
json=0 profile="" plans="*" rounds=5 out=""
run_seconds=1.5 steps_least=3 steps_most=200
long_step=0.3 # from here on one step of warm-up does, not two

usage() {
    sed -n 's/^# \{0,1\}//; 2,/STEPCAST/p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case "$1" in
    --json) json=1 && shift && continue ;;
    --hw | --plans | --rounds | --seconds | --out | --list) [ $# -gt 1 ] || usage ;;
    *) usage ;;
    esac
    case "$1" in
    --hw) profile=$2 ;;
    --plans) plans=$2 ;;
    --rounds) rounds=$2 ;;
    --seconds) run_seconds=$2 ;;
    --out) out=$2 ;;
    --list) list=$2 ;;
    esac
    shift 2
done
case "$rounds" in
'' | *[!0-9]* | 0*) usage ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ -n "$out" ] || out=$folder/out
mkdir -p "$out/traces"
rm -f "$out"/traces/*.json

say() { printf '%s\n' "$*" >&2; }

# A line a plan: name, transport, base plan and --set's, separated by blanks.
python3 - "$list" "$plans" >"$folder/plans" <<'END'
import fnmatch
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
for plan in document["plans"]:
    if fnmatch.fnmatchcase(plan["name"], sys.argv[2]):
        group = document["groups"][plan["group"]]
        print(plan["name"], plan["transport"], group["base"], *group["set"], *plan["set"])
END
if [ ! -s "$folder/plans" ]; then
    say "$list: no plan's name matches $plans"
    exit 3
fi

if [ -z "$profile" ]; then
    say "calibrating this machine"
    profile=$out/this-machine.json
    "$stepcast" calibrate --out "$profile" >"$out/calibration.txt"
fi

# Plans whose transport this build cannot run or the profile does not know are left out.
cut -d' ' -f2 "$folder/plans" | sort -u >"$folder/transports"
while read -r transport; do
    if "$stepcast" sim host_tiny-gpt_1rank --hw "$profile" \
        --set "hw.collectives.transport=$transport" >/dev/null 2>"$folder/no" &&
        "$stepcast" run host_tiny-gpt_1rank --transport "$transport" --steps 1 --warmup 0 \
            >/dev/null 2>"$folder/no" </dev/null; then
        continue
    fi
    say "plans over $transport are left out: $(head -n 1 "$folder/no")"
    grep -v "^[^ ]* $transport " "$folder/plans" >"$folder/kept" || exit 3
    mv "$folder/kept" "$folder/plans"
done <"$folder/transports"

# What a plan's line means to sim and run: sets `arguments` and `transport`.
read_plan() {
    # shellcheck disable=SC2086  # a line is a list of words
    set -- $1
    name=$1 transport=$2
    arguments=("$3" --set "name=$1")
    shift 3
    for assignment in "$@"; do
        arguments+=(--set "$assignment")
    done
}

forecast() {
    read_plan "$1"
    "$stepcast" sim "${arguments[@]}" --hw "$profile" --set "hw.collectives.transport=$transport" \
        --json --trace "$out/traces/$name.predicted.json" >"$folder/$name.json"
    awk -v run="$run_seconds" -v least="$steps_least" -v most="$steps_most" -v long="$long_step" '
        /"step_time_s":/ {
            gsub(/,/, "")
            steps = int(run / $2 + 0.5)
            print (steps < least ? least : steps > most ? most : steps), ($2 < long ? 2 : 1)
            exit
        }' "$folder/$name.json" >"$folder/$name.steps"
}

# One run of one plan in one round.
measure() {
    local steps warmup
    read_plan "$1"
    read -r steps warmup <"$folder/$name.steps"
    "$stepcast" run "${arguments[@]}" --transport "$transport" --hw "$profile" \
        --steps "$steps" --warmup "$warmup" \
        --trace "$out/traces/$name.measured.$2.json" >"$folder/run.txt" </dev/null
    sed -n "s/^Warning: /round $2, $name: /p" "$folder/run.txt" | tee -a "$folder/warnings" >&2
}

: >"$folder/warnings"
mapfile -t lines <"$folder/plans"
say "forecasting ${#lines[@]} plans"
for line in "${lines[@]}"; do
    forecast "$line"
done
for ((round = 1; round <= rounds; round++)); do
    say "round $round of $rounds"
    for line in "${lines[@]}"; do
        measure "$line" "$round"
    done
done

"$stepcast" compare "$out"/traces/*.json --groups "$list" --json >"$out/comparison.json"
"$stepcast" compare "$out"/traces/*.json --groups "$list" >"$out/comparison.txt"
if [ "$json" = 1 ]; then
    cat "$out/comparison.json"
else
    cat "$out/comparison.txt"
fi
contended=$(wc -l <"$folder/warnings")
[ "$contended" = 0 ] ||
    say "$contended of $((rounds * ${#lines[@]})) runs came with a warning (above): their times are not the plan's alone"
