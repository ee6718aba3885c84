#!/usr/bin/env bash
# Installs what stepcast is built and tested with, through apt-get; only what is missing.
#
#   scripts/install_deps.sh             everything
#   scripts/install_deps.sh --minimal   without MPI
#   scripts/install_deps.sh --check     installs nothing; lists what is missing, exit 1 if anything
set -euo pipefail

required=(gcc g++ cmake ninja-build pkg-config libc6-dev libcjson-dev libcmocka-dev libmd-dev
    libopenblas0-pthread python3 git procps)
# (libdnnl-dev: whichever libdnnl this release has; nothing is compiled against it.)
# Left out where this release of the system has no such package.
optional=(clang libclang-rt-14-dev clang-format-14 libdnnl-dev libgsl-dev gnuplot-nox
    python3-jsonschema valgrind)
mpi=(libopenmpi-dev openmpi-bin)

minimal=0 check=0
for argument in "$@"; do
    case "$argument" in
    --minimal) minimal=1 ;;
    --check) check=1 ;;
    *)
        echo "usage: scripts/install_deps.sh [--minimal] [--check]" >&2
        exit 2
        ;;
    esac
done
[ "$minimal" = 1 ] || required+=("${mpi[@]}")

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "no apt-get here; install by hand what these packages of Debian hold:" >&2
    echo "  ${required[*]} ${optional[*]}" >&2
    exit 1
fi

installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

absent() {
    local package
    for package in "$@"; do
        installed "$package" || echo "$package"
    done
}

mapfile -t missing < <(absent "${required[@]}")
mapfile -t wanted < <(absent "${optional[@]}")
if [ $((${#missing[@]} + ${#wanted[@]})) = 0 ]; then
    exit 0
fi
if [ "$check" = 1 ]; then
    echo "missing: ${missing[*]} ${wanted[*]}"
    exit 1
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "not root and no sudo; to be installed: ${missing[*]} ${wanted[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
apt() {
    ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq \
        -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" >/dev/null
}

# A failed update is no failure yet: an earlier one may know the packages.
apt update || echo "apt-get update failed; going on with the lists that are here" >&2
for package in ${wanted[@]+"${wanted[@]}"}; do
    candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: //p')
    if [ -n "$candidate" ] && [ "$candidate" != "(none)" ]; then
        missing+=("$package")
    fi
done
if [ "${#missing[@]}" -gt 0 ]; then
    echo "installing ${missing[*]}" >&2
    apt install -y --no-install-recommends "${missing[@]}"
fi
