"""Code that the tests of the command-line tools share: running a tool, and files to run it on.

Each test is run as `python3 X_test.py --tools FOLDER [unittest arguments]`.
"""

import atexit
import functools
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

TEST_DIR = pathlib.Path(__file__).resolve().parent.parent
MODELS = TEST_DIR / "Models"
ORACLE = TEST_DIR / "oracle"
TOKENS = ORACLE / "tokens.bin"

# Every family, with a batch that divides into one and three parts. No size is a multiple of a vector's width.
TRAIN_SHAPES = {
    "gpt2-tiny": ["--batch", "3", "--seq", "13"],
    "llama-tied": ["--batch", "3", "--seq", "17"],
    "llama-tiny": ["--batch", "3", "--seq", "11"],
    "mistral-tiny": ["--batch", "3", "--seq", "9"],
    "qwen2-tiny": ["--batch", "3", "--seq", "7"],
    "qwen3-tiny": ["--batch", "3", "--seq", "15"],
}

# Two threads on a busy machine mostly wait for each other. Where threads matter, the tests ask for more.
ONE_THREAD = ["--threads", "1"]

# Of all random choices, and their only source; see test/Support/test_seed.h.
TEST_SEED = int(os.environ.get("BOWLINE_TEST_SEED", 1))

# The levels of --target-cpu, the least first. BOWLINE_TARGET_CPU makes a process take its machine for one of them.
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+avx512bf16", "x86-64-v4+avx512bf16+amx"]

# Whether sweeps go through all of their cases, of which `make check` takes some.
NIGHTLY = os.environ.get("BOWLINE_NIGHTLY", "") == "1"

# A driver that executes the tests' plans, instead of the plans' own: with all that a plan means in its events, for
# instance discrete:seed=1 must give the same results.
TEST_DRIVER = os.environ.get("BOWLINE_TEST_DRIVER", "")

# A command that takes longer hangs.
TIMEOUT_SECONDS = 120 if not TEST_DRIVER else 1200

_tools = pathlib.Path()


def tool(name):
    return str(_tools / name)


def on_test_driver(arguments):
    """The arguments of bowline-run, with the tests' driver where they name none."""
    return [*arguments, "--driver", TEST_DRIVER] if TEST_DRIVER and "--driver" not in arguments else [*arguments]


@functools.cache
def kernel_cache():
    """The folder in which compilations find the kernels of earlier ones: that of the whole run where one is named, else of
    this process. It begins empty, so that each kernel is compiled once in a run."""
    folder = os.environ.get("BOWLINE_TEST_KERNEL_CACHE", "")
    if not folder:
        folder = tempfile.mkdtemp(prefix="bowline-test-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def start(name, *arguments, before="", **keywords):
    """The finished process of a tool; `before` is shell code that goes first in its process (a limit, say)."""
    if name == "bowline-run":
        arguments = on_test_driver(arguments)
    command = [tool(name), *map(str, arguments)]
    if before:
        command = ["bash", "-c", before + '; exec "$@"', "bash", *command]
    # Tests leave nothing in the cache of the user who runs them, and all of them assume the same machine. A limit on a
    # compiler's resources limits its cache too.
    cache = kernel_cache() if "bowline-compile" in name and not before else "off"
    environment = {"BOWLINE_CACHE_DIR": cache, "BOWLINE_TARGET_CPU": os.environ.get("BOWLINE_TARGET_CPU", ""),
                   **(keywords.pop("env", None) or os.environ)}
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, env=environment, **keywords)


def succeed(name, *arguments, **keywords):
    """stdout of a tool that must end with exit code 0."""
    done = start(name, *arguments, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, done.args))}\nexit code {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def as_level(level, **more):
    """The environment of a tool that takes this machine for one of the level: bits follow from it."""
    return {**os.environ, "BOWLINE_TARGET_CPU": level, **more}


@functools.cache
def machine_has(level):
    """Whether this machine runs as one of the level."""
    done = start("bowline-compile", MODELS / "llama-tiny", *TRAIN_SHAPES["llama-tiny"], "--compile-to", "input", "-o", "-",
                 env=as_level(level))
    if done.returncode != 0 and b"is more than this machine" not in done.stderr:
        raise AssertionError(done.stderr.decode())
    return done.returncode == 0


def compile_emulated(model, plan, *flags):
    """A plan for cards whose generated kernels are code of this processor."""
    succeed("../test/bin/bowline-compile-emulated", MODELS / model, "--target", "cuda", *flags, "-o", plan)


def with_stand_ins(**more):
    """The environment in which the cuda driver finds stand-ins for NVIDIA's libraries."""
    return {**os.environ, "LD_LIBRARY_PATH": str(_tools.parent / "test" / "cuda_stand_in"), **more}


def with_slow_files(text, seconds, until="", after=0, **more):
    """The environment in which files whose path contains the text take so much longer to open, or until a file is there;
    without the first of them, `after`."""
    library = _tools.parent / "test" / "slow_files" / "libbowline_slow_files.so"
    # Sanitizers want to come first.
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return {**os.environ, "LD_PRELOAD": str(library), "ASAN_OPTIONS": options, "BOWLINE_SLOW_FILES": str(text),
            "BOWLINE_SLOW_SECONDS": str(seconds), "BOWLINE_SLOW_UNTIL": str(until),
            "BOWLINE_SLOW_AFTER": str(after), **more}


def compile_train(model, plan, *flags, threads=1):
    succeed("bowline-compile", MODELS / model, "--mode", "train", *TRAIN_SHAPES[model],
            "--threads", threads, *flags, "-o", plan)


def compile_generate(model, plan, *flags):
    # GPT-2's positions end here.
    succeed("bowline-compile", MODELS / model, "--mode", "generate", "--seq", "29", *ONE_THREAD, *flags,
            "-o", plan)


def metrics_of(path, without=("step_ms", "tokens_per_s", "host_ms", "run")):
    """The lines of a metrics file, without numbers that differ from run to run, as how long saves in the background take.
    Numbers stay text: equal means equal bits."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line, parse_float=str) for line in file]
    return [{key: value for key, value in line.items() if key not in without} for line in lines if "save_s" not in line]


def slices_of(*paths):
    """The commands in files of --trace, by rank and stream, in the order of their begin."""
    rows = {}
    for path in paths:
        for event in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["traceEvents"]:
            if event["ph"] == "X":
                rows.setdefault((event["pid"], event["tid"]), []).append(event)
    return {row: sorted(events, key=lambda event: event["ts"]) for row, events in rows.items()}


def llmc_file(tokens, magic=20240520, version=1, count=None):
    """A token file in the format of llm.c."""
    header = [magic, version, len(tokens) if count is None else count] + [0] * 253
    return struct.pack("<256i", *header) + struct.pack(f"<{len(tokens)}H", *tokens)


def random_tokens(count, vocabulary, seed=1):
    return random.Random(seed).choices(range(vocabulary), k=count)


class ToolTest(unittest.TestCase):
    """A test with a folder of its own, `self.folder`, that goes when the test ends."""

    def setUp(self):
        folder = tempfile.mkdtemp(prefix="bowline-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.folder = pathlib.Path(folder)


class CountedResult(unittest.TextTestResult):
    """Where a run of all tests counts cases, writes the verdict of each as JUnit: into a file of the ctest entry's name."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.started = []

    def startTest(self, test):
        super().startTest(test)
        self.started.append(test)

    def stopTestRun(self):
        super().stopTestRun()
        folder, name = (os.environ.get(f"BOWLINE_UNITTEST_{variable}") for variable in ("FOLDER", "NAME"))
        if not folder or not name:
            return
        # A subtest counts with its case; an error in setUpClass belongs to no case.
        verdicts = {test.id(): "passed" for test in self.started}
        for element, tests in (("skipped", self.skipped), ("failure", self.failures + self.errors)):
            verdicts.update({getattr(test, "test_case", test).id(): element for test, _ in tests})
        suite = ElementTree.Element("testsuite")
        for case_name, verdict in verdicts.items():
            case = ElementTree.SubElement(suite, "testcase", name=case_name)
            if verdict != "passed":
                ElementTree.SubElement(case, verdict)
        ElementTree.ElementTree(suite).write(pathlib.Path(folder) / f"{name}.xml")


class CountedRunner(unittest.TextTestRunner):
    resultclass = CountedResult


def use(folder):
    """Tools are those of `folder`."""
    global _tools
    _tools = pathlib.Path(folder).resolve()


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "--tools":
        sys.exit(__doc__)
    use(sys.argv[2])
    del sys.argv[1:3]
    # Not the module that holds main(): that is imported under its own name.
    unittest.main(module="__main__", testRunner=CountedRunner)
