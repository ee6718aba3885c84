#!/usr/bin/env bash
# Domino against Megatron on a slow link: two ranks on this machine, a process each, that talk over
# TCP through a loopback of limited rate in a network namespace of their own. Calibrates there,
# forecasts both plans, runs both in turn several times, and compares. Leaves profile, traces and
# timelines (figures; and for chrome://tracing, ui.perfetto.dev) and prints the speed-up, measured and
# forecast.
# Needs root, ip and tc, and a machine with nothing else to do; about two minutes.
#
#   scripts/slowlink.sh [--rate RATE] [--transport sockets|mpi] [--rounds N] [--out DIR]
#                       [--hw PROFILE] [--quick]
#
#   --rate       of the loopback, both directions together; none: as fast as it is  (1750mbit)
#   --transport  what the ranks' collectives go over                               (sockets)
#   --rounds     runs of each plan                                                 (5)
#   --out        where to leave the results                                        (slowlink-out)
#   --hw         this profile of the link instead of calibrating
#   --quick      shows that it works; its numbers mean nothing
#   STEPCAST     the program                                          (build/stepcast)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

rate=1750mbit transport=sockets rounds=5 out=slowlink-out profile=""
steps=4 warmup=1 calibrate=(--seconds 30) sets=()

usage() {
    sed -n 's/^# \{0,1\}//; 2,/STEPCAST/p' "$0" >&2
    exit 2
}
arguments=("$@")
while [ $# -gt 0 ]; do
    case "$1" in
    --quick)
        rounds=1 steps=1 warmup=1 calibrate=(--tiny)
        sets=(--set batch.sequence_length=8)
        shift
        continue
        ;;
    --rate | --transport | --rounds | --out | --hw) [ $# -gt 1 ] || usage ;;
    *) usage ;;
    esac
    case "$1" in
    --rate) rate=$2 ;;
    --transport) transport=$2 ;;
    --rounds) rounds=$2 ;;
    --out) out=$2 ;;
    --hw) profile=$(realpath "$2") ;;
    esac
    shift 2
done
case "$rounds" in
'' | *[!0-9]* | 0*) usage ;;
esac
case "$transport" in
sockets | mpi) ;;
*) usage ;;
esac

# ---- the link: this script again, in a namespace whose loopback is limited ----
if [ -z "${STEPCAST_SLOWLINK_INSIDE:-}" ]; then
    missing=""
    [ "$(id -u)" = 0 ] || missing="root"
    for tool in ip tc unshare mpirun python3; do
        command -v "$tool" >/dev/null || missing="${missing:+$missing, }$tool"
    done
    if [ -z "$missing" ] && ! unshare --net true 2>/dev/null; then
        missing="the right to make a network namespace"
    fi
    if [ -n "$missing" ]; then
        echo "slowlink: needs $missing" >&2
        exit 2
    fi
    STEPCAST_SLOWLINK_INSIDE=1 exec unshare --net "$0" "${arguments[@]}"
fi
ip link set lo up
# A burst of two of the largest packets that loopback hands over; a queue that no window overflows.
if [ "$rate" != none ] &&
    ! tc qdisc add dev lo root tbf rate "$rate" burst 128kb latency 50ms; then
    echo "slowlink: --rate: found \"$rate\", expected a rate as tc takes it (1750mbit) or none" >&2
    exit 2
fi
# What Open MPI would do through shared memory goes over the link as well.
export OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 OMPI_MCA_btl_tcp_if_include=lo
export OMPI_MCA_btl_tcp_links=2
if [ -w /proc/sys/net/ipv4/tcp_congestion_control ]; then # bbr reaches half of a limited rate
    echo reno 2>/dev/null >/proc/sys/net/ipv4/tcp_congestion_control || true
fi

stepcast=${STEPCAST:-$root/build/stepcast}
plans=$root/tests/bench/slowlink
mkdir -p "$out"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

say() { printf '\n== %s\n' "$*"; }

if [ -n "$profile" ]; then
    cp "$profile" "$folder/link.json"
else
    say "calibrating: collectives over $transport, rate $rate"
    "$stepcast" calibrate --transport "$transport" --ranks 2 --name slowlink \
        --out "$folder/link.json" "${calibrate[@]}" | tail -n 2
fi
rm -f "$out"/*.json
mv "$folder/link.json" "$out/link.json"

for plan in megatron domino2; do
    "$stepcast" sim "$plans/$plan.json" --hw "$out/link.json" ${sets[@]+"${sets[@]}"} \
        --trace "$out/$plan.forecast.json" --timeline "$out/$plan.forecast.timeline.json" \
        >"$out/$plan.forecast.txt"
done

say "running both in turn, $rounds times"
for ((round = 1; round <= rounds; round++)); do
    for plan in megatron domino2; do
        "$stepcast" run "$plans/$plan.json" --transport "$transport" ${sets[@]+"${sets[@]}"} \
            --steps "$steps" --warmup "$warmup" --trace "$out/$plan.measured.$round.json" \
            --timeline "$out/$plan.measured.timeline.json" >"$out/$plan.measured.$round.txt"
    done
done

say "forecast and measured"
"$stepcast" compare "$out"/megatron.forecast.json "$out"/megatron.measured.*[0-9].json \
    "$out"/domino2.forecast.json "$out"/domino2.measured.*[0-9].json | tee "$out/compare.txt"
if command -v gnuplot >/dev/null; then
    for plan in megatron domino2; do
        "$stepcast" compare "$out/$plan.forecast.json" "$out/$plan.measured.$rounds.json" \
            --figures "$out/figures-$plan" >/dev/null
    done
fi
python3 - "$out" <<'END'
import glob
import json
import statistics
import sys

out = sys.argv[1]


def period(file):
    with open(file, encoding="utf-8") as stream:
        return json.load(stream)["period_us"]


def communication(file):
    """Share of the step in which the comm streams' operations run, of the rank that is shown."""
    with open(file, encoding="utf-8") as stream:
        trace = json.load(stream)
    columns = trace["columns"]
    kind, start, end = (columns.index(name) for name in ("kind", "transfer_us", "end_us"))
    collectives = ("all_reduce", "all_gather", "reduce_scatter")
    busy = sum(row[end] - row[start] for row in trace["rows"] if row[kind] in collectives)
    return busy / trace["period_us"]


measured, forecast, shares = {}, {}, {}
for plan in ("megatron", "domino2"):
    files = sorted(glob.glob(f"{out}/{plan}.measured.[0-9]*.json"))
    measured[plan] = [period(file) for file in files]
    forecast[plan] = period(f"{out}/{plan}.forecast.json")
    shares[plan] = communication(files[-1])
    middle = statistics.median(measured[plan])
    print(f"{plan:9}  measured {middle / 1e3:8.1f} ms ({min(measured[plan]) / 1e3:.1f} to "
          f"{max(measured[plan]) / 1e3:.1f})  forecast {forecast[plan] / 1e3:8.1f} ms  "
          f"error {100 * (forecast[plan] / middle - 1):+5.1f} %")
print(f"communication of the baseline: {100 * shares['megatron']:.0f} % of its step")
pairs = [a / b for a, b in zip(measured["megatron"], measured["domino2"])]
ratio = statistics.median(pairs)
told = forecast["megatron"] / forecast["domino2"]
print(f"speed-up of Domino: measured {ratio:.3f} ({min(pairs):.3f} to {max(pairs):.3f}), "
      f"forecast {told:.3f}, difference {100 * (told / ratio - 1):+.1f} %")
END
echo "profile, traces, timelines: $out/"
