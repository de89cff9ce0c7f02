#!/usr/bin/env python3
"""Asks bowline-serve what its users' programs ask, and more than it can answer: some minutes on two processors.

  scripts/check-serve.py [--build-dir build/release] [--only NAME,...]

  load       10,000 requests of 500 clients, of which many leave at some stage, read slowly or send nonsense
  overload   500 streams that are open at once; answers under five times the requests that can be answered
  openai     the Python package openai as a client
  schema     schemathesis, which makes requests from /openapi.json
  metrics    promtool, which reads /metrics
  page       Chromium, which uses the page to chat

The first two need no package. For the others, the packages of scripts/check-serve-requirements.txt and promtool, of Debian's
package prometheus, are installed into build/check-serve, where they start nothing; Chromium is to be there (`make
check-serve` installs it). The models are small, and made here.

Exit status: 0 when each ended well and left nothing out, 1 otherwise.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "test/Execution"
PLACE = ROOT / "build/check-serve"
REQUIREMENTS = ROOT / "scripts/check-serve-requirements.txt"

# The file, and the case of it if not all of them.
PARTS = {
    "load": ("serve_load_test.py",),
    "overload": ("serve_overload_test.py",),
    "openai": ("serve_openai_test.py",),
    "schema": ("serve_schema_test.py",),
    "metrics": ("serve_test.py", "Serve.test_promtool_takes_the_metrics"),
    "page": ("chat_page_test.py",),
}
WITHOUT_PACKAGES = ["load", "overload"]


class Failure(Exception):
    pass


def call(*command, why):
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{why}: '{' '.join(map(str, command))}' ended with {done.returncode}\n{done.stdout}")


def install_requirements():
    """The interpreter of an environment that has the packages of the list."""
    python, installed = PLACE / "venv/bin/python", PLACE / "venv/requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
        print(f"check-serve: installing {REQUIREMENTS.name} into {PLACE / 'venv'}", flush=True)
        call(sys.executable, "-m", "venv", "--clear", PLACE / "venv", why="cannot make an environment of Python")
        call(python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--requirement", REQUIREMENTS,
             why="cannot install packages of PyPI")
        installed.write_text(wanted, encoding="utf-8")
    return python


def install_promtool():
    """The folder with promtool. The package's files alone: where it is installed as Debian does, it starts a server."""
    there = shutil.which("promtool")
    if there:
        return pathlib.Path(there).parent
    files = PLACE / "prometheus"
    if not (files / "usr/bin/promtool").exists():
        print(f"check-serve: unpacking Debian's package prometheus into {files}", flush=True)
        files.mkdir(parents=True, exist_ok=True)
        for package in files.glob("*.deb"):
            package.unlink()
        done = subprocess.run(["apt-get", "-q", "download", "prometheus"], cwd=files, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"cannot fetch Debian's package prometheus; 'apt-get update' may help\n{done.stdout}")
        package, = files.glob("*.deb")
        call("dpkg-deb", "--extract", package, files, why="cannot unpack Debian's package prometheus")
        package.unlink()
    return files / "usr/bin"


def run_part(name, python, tools, environment):
    """Runs a test, and returns its output beside its verdict. The test may skip nothing."""
    file, *cases = PARTS[name]
    done = subprocess.run([python, TESTS / file, "--tools", tools, *cases], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env=environment)
    verdict = re.search(r"^Ran (\d+) tests? in .*\n\n(OK.*|FAILED.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not verdict or verdict[2] != "OK" or verdict[1] == "0":
        raise Failure(f"{name} failed, or left something out:\n{done.stdout}")
    return [line for line in done.stdout[:verdict.start()].splitlines() if re.search(r"\w", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS), metavar="NAME,...")
    options = parser.parse_args()
    if unknown := set(options.only) - set(PARTS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    environment = {**os.environ, "BOWLINE_NIGHTLY": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    python, failed = sys.executable, []
    try:
        if not set(options.only) <= set(WITHOUT_PACKAGES):
            python = install_requirements()
            environment["PATH"] = os.pathsep.join([str(python.parent), str(install_promtool()), os.environ["PATH"]])
    except Failure as failure:
        sys.exit(f"check-serve: error: {failure}")
    for name in options.only:
        begin = time.monotonic()
        try:
            said = run_part(name, python, options.build_dir.resolve() / "bin", environment)
        except Failure as failure:
            failed.append(name)
            print(f"check-serve: error: {failure}", file=sys.stderr, flush=True)
            continue
        for line in said:
            print(f"  {line}")
        print(f"check-serve: {name} passed in {time.monotonic() - begin:.0f} s", flush=True)
    if failed:
        sys.exit(f"check-serve: error: {', '.join(failed)} failed")
    print("check-serve: passed")


if __name__ == "__main__":
    main()
