"""How lit runs fold-transposes.mlir; CMakeLists.txt gives the parameters."""

import os

import lit.formats

config.name = "write-a-pass"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_exec_root = os.path.join(lit_config.params["out"], "lit")
config.environment["PATH"] = os.pathsep.join(
    [lit_config.params["bowline"], lit_config.params["llvm"], config.environment["PATH"]])
config.substitutions.append(("%plugin", lit_config.params["plugin"]))
