#!/usr/bin/env bash
# Formats C++ sources in place, as .clang-format in their folder says.
#
#   scripts/format.sh [--check] [FILE...]
#
# --check  changes nothing, and exits 1 naming the lines that would change
# FILE     default: all sources that git knows
set -euo pipefail
cd "$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)"

formatter=clang-format-22
command -v "$formatter" >/dev/null ||
  { echo "format: error: $formatter is missing; run scripts/install-packages.sh" >&2; exit 1; }

options=(-i)
if [ "${1:-}" = --check ]; then
  options=(--dry-run -Werror)
  shift
fi
files() {
  if [ $# -gt 0 ]; then printf '%s\0' "$@"; else git ls-files -z -- '*.h' '*.cc' '*.cpp' '*.cu'; fi
}
if ! files "$@" | xargs -0 -n 32 -P "$(nproc)" "$formatter" "${options[@]}"; then
  echo "format: error: the sources above are not formatted; run 'make format'" >&2
  exit 1
fi
