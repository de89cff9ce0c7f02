#!/usr/bin/env bash
# Makes the tarball of `make package`, unpacks it in a folder of its own, moves that, and runs a plan with its tools, which
# find no other copy of the libraries that they bring. Needs the release build, whose compiler makes the plan.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
make --no-print-directory package

fail() {
  echo "check-package: error: $*" >&2
  exit 1
}

tarballs=(build/bowline-*.tar.gz)
[ "${#tarballs[@]}" = 1 ] || fail "there are ${#tarballs[@]} tarballs: ${tarballs[*]}; remove the old ones"
mkdir "$folder/unpacked"
tar -C "$folder/unpacked" -xzf "${tarballs[0]}"
mv "$folder/unpacked"/bowline-* "$folder/moved here"
bin="$folder/moved here/bin"

# The loop skips the libraries of the C library: the tarball has all others.
for tool in "$bin"/*; do
  foreign=$(ldd "$tool" | sed -n 's/.* => \(.*\) (0x.*/\1/p' | grep -v -F "$folder/moved here/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so\.[0-9]+$' || true)
  [ -z "$foreign" ] || fail "$(basename "$tool") uses libraries that the tarball does not have: $foreign"
done
ldd "$bin/bowline-run" | grep -qE 'LLVM|MLIR' && fail "bowline-run of the tarball uses LLVM"

build/release/bin/bowline-compile test/Models/llama-tiny --batch 4 --seq 32 -o "$folder/x.plan"
cp test/oracle/tokens.bin "$folder/"
cd "$folder"
env -i PATH=/usr/bin:/bin "$bin/bowline" --version
env -i PATH=/usr/bin:/bin "$bin/bowline" check x.plan | tail -n 1 | grep -qx sound || fail "the plan is not sound"
env -i PATH=/usr/bin:/bin "$bin/bowline" run x.plan --data tokens.bin --steps 3 --metrics metrics.jsonl
[ "$(wc -l < metrics.jsonl)" = 3 ] || fail "three steps left $(wc -l < metrics.jsonl) lines of metrics"
echo "check-package: the tarball's tools run a plan from '$folder/moved here'"
