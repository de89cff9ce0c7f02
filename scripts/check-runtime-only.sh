#!/usr/bin/env bash
# Builds the runtime alone, with LLVM and MLIR hidden from CMake, and proves that the build read no header and linked no
# library of theirs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/runtime-only
cmake --preset runtime-only --no-warn-unused-cli -DBOWLINE_BUILD_TESTS=OFF \
  -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON
cmake --build --preset runtime-only
scripts/check-layering.py --build-dir "$build" --no-mlir-in-build
