"""Configuration of the textual tests. Run all: ctest -R lit. Run one: lit-22 -v BUILD/test --filter canonicalize."""

import os

import lit.formats

config.name = "Bowline"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "Unit", "Fuzz", "Inputs", "Models", "oracle"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.bowline_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.bowline_tools_dir, config.llvm_tools_dir, config.environment.get("PATH", "")]
)
# Tests leave nothing in the cache of whoever runs them.
config.environment["BOWLINE_CACHE_DIR"] = "off"
# MLIR's allocators poison memory in ways that AddressSanitizer misreads.
config.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "allow_user_poisoning=0")

# Every file that bowline-opt reads must print, parse and encode to bytecode to the same module. BOWLINE_VERIFY_ROUNDTRIP=0
# switches this off to look at a failure without it.
bowline_opt = os.path.join(config.bowline_tools_dir, "bowline-opt")
if os.environ.get("BOWLINE_VERIFY_ROUNDTRIP", "1") != "0":
    bowline_opt += " --verify-roundtrip"
config.substitutions.append((r"\bbowline-opt\b(?!\.)", bowline_opt))
