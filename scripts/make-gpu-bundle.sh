#!/usr/bin/env bash
# Makes the folder build/gpu-bundle: the runtime, the driver for NVIDIA's cards and its tests, for any x86-64 Linux with
# glibc 2.36 or newer and a driver for CUDA 13. Checks that nothing of it needs a file of this machine.
#
#   scripts/make-gpu-bundle.sh [BUILD]
#
# BUILD  the build folder whose programs are taken; default: build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build/release}
bundle=build/gpu-bundle
newest_glibc=2.36
most_bytes=$((80 << 20)) # programs have the kernels of all instruction sets, each of them

fail() {
  echo "make-gpu-bundle: error: $*" >&2
  exit 1
}

[ -e "$build/bin/libbowline_cuda.so" ] ||
  fail "$build has no driver for NVIDIA's cards; it is built where a toolkit of CUDA 13 is: set CUDA_HOME"

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib"
programs=("$build/bin/bowline-run" "$build/bin/bowline-inspect" "$build/bin/bowline-card-bench" "$build/bin/libbowline_cuda.so"
  "$build/bin/libbowline_discrete.so"
  "$build/test/bin/hal-test" "$build/test/bin/cuda-card-test" "$build/test/bin/recording-test"
  "$build/test/bin/session-overlap-loopback-test" "$build/test/bin/session-fault-test")
cp -L "${programs[@]}" "$bundle/bin/"
cp -L "$build/test/Unit/Plan/fixture_kernels.so" "$bundle/bin/"
cp -LR scripts/gpu-bundle/. LICENSE "$bundle/"

# Plans are compiled here: nothing of the compiler is needed there.
scripts/make-card-plans.py "$build/bin" "$bundle"

# Shared libraries that come with every system: the C library's, and the C++ library, which is older here than there.
of_the_system='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so'
ldd "${programs[@]}" | awk '$2 == "=>" { print $1, $3 }' | sort -u | while read -r name path; do
  [[ $name =~ $of_the_system ]] && continue
  [ -e "$path" ] || fail "$name is missing on this machine"
  cp -L "$path" "$bundle/lib/$name"
done
strip --strip-unneeded "$bundle"/bin/* "$bundle"/lib/*

# With nothing but the bundle's folder.
missing=$(env -i LD_LIBRARY_PATH="$PWD/$bundle/lib" ldd "$bundle"/bin/* "$bundle"/lib/* |
  awk -v folder="$PWD/$bundle/lib/" -v given="${of_the_system//\\/\\\\}" \
    '$2 == "=>" && index($3, folder) != 1 && $1 !~ given { print $1 }' | sort -u)
[ -z "$missing" ] || fail "the bundle lacks $missing"
newest=$(objdump -T "$bundle"/bin/* "$bundle"/lib/* | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -Vu | tail -1)
[ "$(printf '%s\n' "$newest" "$newest_glibc" | sort -V | tail -1)" = "$newest_glibc" ] ||
  fail "the bundle needs glibc $newest; make it on a system with glibc $newest_glibc or older"
bytes=$(du -sb "$bundle" | cut -f1)
[ "$bytes" -le "$most_bytes" ] || fail "the bundle has $bytes bytes; at most $most_bytes are allowed"
echo "$bundle: $((bytes >> 20)) MiB, glibc $newest; run $bundle/run-card on a machine with a card"
