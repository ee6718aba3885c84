#!/usr/bin/env bash
# The slow link's script works from end to end, with a limited loopback: usage: slowlink.sh SOURCE
# STEPCAST. No time is looked at. Skipped (77) where there is no root, tc or network namespace.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
STEPCAST=$2 "$1/scripts/slowlink.sh" --quick --rate 2gbit --out "$out" >"$out/said" 2>"$out/errors"
code=$?
if [ "$code" = 2 ] && grep -q 'slowlink: needs' "$out/errors"; then
    cat "$out/errors"
    exit 77
fi
if [ "$code" != 0 ]; then
    cat "$out/said" "$out/errors"
    exit 1
fi
for plan in megatron domino2; do
    for what in forecast.json forecast.timeline.json measured.1.json measured.timeline.json; do
        [ -s "$out/$plan.$what" ] || { echo "$plan.$what is missing" && exit 1; }
    done
done
grep 'speed-up of Domino: measured [0-9.]* .*forecast [0-9.]*' "$out/said"
