"""The private Python environment with PyTorch and JAX, made once and then used again."""

import json
import pathlib
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().with_name("requirements.txt")
LIST_VERSIONS = ("import importlib.metadata as m, json; "
                 "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions()}))")


def wanted():
    """Package -> version, from requirements.txt."""
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def installed(python):
    """Package -> version of the environment's packages; nothing when the environment does not work."""
    if not python.exists():
        return {}
    process = subprocess.run([python, "-c", LIST_VERSIONS], capture_output=True, text=True, check=False)
    return json.loads(process.stdout) if process.returncode == 0 else {}


def missing(have):
    """Packages that are not there in the version wanted. Local parts of versions, as in 2.15.0+cpu, do not count."""
    return [f"{name}=={version}" for name, version in wanted().items() if have.get(name, "").split("+")[0] != version]


def prepare(folder):
    """The environment's interpreter, after making the environment and installing missing packages."""
    python = folder / "bin/python"
    if not missing(installed(python)):
        return python
    print(f"bench-peers: installing {', '.join(missing(installed(python)))} into {folder} (6 GiB)", file=sys.stderr)
    if not installed(python):
        command = [sys.executable, "-m", "venv", "--clear", str(folder)]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            sys.exit(f"bench-peers: error: '{' '.join(command)}' failed; on Debian, install python3-venv")
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        sys.exit(f"bench-peers: error: '{' '.join(command)}' failed; it needs a package registry that pip can reach")
    if missing(installed(python)):
        sys.exit(f"bench-peers: error: {folder} still lacks {', '.join(missing(installed(python)))}; "
                 "remove it and retry")
    return python
