#!/usr/bin/env bash
# Is every C and CUDA file formatted as .clang-format says? Exit 77 (skipped) where the version that
# decides is absent: other versions break lines differently. With --fix, formats instead.
set -euo pipefail
cd "$(dirname "$0")/.."

version=14
tool=""
for candidate in "clang-format-$version" clang-format; do
    if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q "version $version\."; then
        tool=$candidate
        break
    fi
done
if [ -z "$tool" ]; then
    echo "clang-format $version is not installed: not checked"
    exit 77
fi

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
else
    mapfile -t files < <(find base model plans sim exec reports cli tests -name '*.[ch]' -o -name '*.cu')
fi
[ "${#files[@]}" -gt 0 ] || exit 0
if [ "${1:-}" = --fix ]; then
    exec "$tool" -i "${files[@]}"
fi
"$tool" --dry-run -Werror "${files[@]}"
