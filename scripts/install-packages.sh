#!/usr/bin/env bash
# Installs the Debian packages that packages.txt lists. Does nothing, and needs no network, when all are there.
#
#   scripts/install-packages.sh [--list FILE] [--check]
#
# --list   read FILE instead, one package a line
# --check  install nothing, exit 1 when something is missing
# BOWLINE_SKIP_PACKAGES=1 skips it all, for machines that have the same software from somewhere else.
set -euo pipefail

list="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/packages.txt"

fail() {
  echo "install-packages: error: $*" >&2
  exit 1
}

check_only=0
while [ $# -gt 0 ]; do
  case "$1" in
    --check) check_only=1 ;;
    --list)
      [ -r "${2:-}" ] || fail "--list needs a file that can be read, not '${2:-}'"
      list="$2"
      shift
      ;;
    *) fail "unknown argument '$1'; there are --list FILE and --check" ;;
  esac
  shift
done
[ "${BOWLINE_SKIP_PACKAGES:-0}" = 1 ] && exit 0

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "this is no Debian system. Install what packages.txt lists in its own way, then set BOWLINE_SKIP_PACKAGES=1."

mapfile -t wanted < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$list")
[ "${#wanted[@]}" -gt 0 ] || fail "$list names no package"

# dpkg-query exits 1 when it does not know one of the names: that one is missing too.
installed="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)"
missing=()
for package in "${wanted[@]}"; do
  grep -qxF "installed $package" <<<"$installed" || missing+=("$package")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if [ "$check_only" = 1 ]; then
  fail "missing packages: ${missing[*]}"
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail "missing packages: ${missing[*]}. Installing them needs root: run 'apt-get install ${missing[*]}' as root."
  as_root=(sudo)
  # Without a terminal nobody could type a password; fail at once instead of waiting.
  [ -t 0 ] || as_root=(sudo -n)
fi

apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

echo "install-packages: installing ${missing[*]}" >&2
# clang, LLVM and MLIR 22 are in the security suite of Debian 12 (bookworm-security), which a standard system has enabled.
for attempt in 1 2 3; do
  if apt update && apt install --no-install-recommends "${missing[@]}"; then
    exit 0
  fi
  [ "$attempt" = 3 ] || sleep $((attempt * 10))
done
fail "apt-get could not install: ${missing[*]}. See its messages above; Bowline needs Debian 12 with its security suite" \
  "(bookworm-security) enabled in the apt sources, a network, and root rights."
