#!/usr/bin/env bash
# Installs what is missing, builds, runs the tests. The last lines are CTest's own; exit 0 when every
# test passed.
#
# Everything can be changed from outside:
#   BUILD_DIR        where to build                                 (build)
#   BUILD_TYPE       Release, Debug                                 (Release)
#   CC               the compiler                                   (cc's choice)
#   CMAKE_ARGS       further arguments for the configuration, e.g. "-DSTEPCAST_MPI=OFF"
#   CTEST_ARGS       further arguments for ctest, e.g. "-L unit" or "-R json"
#   JOBS             compilations and tests at once                 (number of cores)
#   STEPCAST_INSTALL 0: install nothing; minimal: without MPI       (1)
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD_DIR=${BUILD_DIR:-build}
JOBS=${JOBS:-$(nproc)}

case "${STEPCAST_INSTALL:-1}" in
0) ;;
minimal) scripts/install_deps.sh --minimal ;;
*) scripts/install_deps.sh ;;
esac

generator=()
if [ ! -e "$BUILD_DIR/CMakeCache.txt" ] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
fi
# shellcheck disable=SC2086  # CMAKE_ARGS and CTEST_ARGS are lists of words
cmake -S . -B "$BUILD_DIR" ${generator[@]+"${generator[@]}"} \
    -DCMAKE_BUILD_TYPE="${BUILD_TYPE:-Release}" ${CMAKE_ARGS:-}
cmake --build "$BUILD_DIR" --parallel "$JOBS"

# shellcheck disable=SC2086
ctest --test-dir "$BUILD_DIR" --parallel "$JOBS" --output-on-failure --no-tests=error \
    ${CTEST_ARGS:-}
