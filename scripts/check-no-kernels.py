#!/usr/bin/env python3
"""Checks that programs contain no kernel and load no library of kernels or threads.

The compiler knows kernels by what targets say of them (targets/target.h). A kernel is in a program where it has a function
that only kernels of processors call or are: the registry's CreateKernel, the teams of threads, or code of an instruction
set (kernels/cpu/isa/isa.h). Each find is one line on stderr: PROGRAM: what; what to do.

Exit status: 0 when there is none, 1 otherwise.
"""

import argparse
import re
import subprocess
import sys

KERNEL = re.compile(r"^bowline::kernels::(?:CreateKernel\(|AllKernels\(|ParallelLoop::|isa_(?:baseline|avx2|avx512|avx512bf16|amx)::)")
LIBRARIES = re.compile(r"^lib(?:gomp|omp|iomp5|dnnl|mkl\w*)\b")


def run(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def kernels_in(program: str) -> list[str]:
    # "address type name": defined symbols only.
    return [name for line in run("nm", "--defined-only", "-C", program)
            if KERNEL.match(name := line.split(" ", 2)[-1])]


def libraries_of(program: str) -> list[str]:
    needed = (re.search(r"\(NEEDED\).*\[(.+)\]", line) for line in run("readelf", "-d", program))
    return [match.group(1) for match in needed if match and LIBRARIES.match(match.group(1))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--with-kernels", metavar="PROGRAM", help="one that has kernels, in which this script must find some")
    args = parser.parse_args()
    status = 0
    for program in args.programs:
        for what in kernels_in(program)[:3] + libraries_of(program):
            status = 1
            print(f"{program}: has {what}; ask the target's description instead of a kernel", file=sys.stderr)
    if args.with_kernels and not kernels_in(args.with_kernels):
        status = 1
        print(f"{args.with_kernels}: no kernels are found where there are some; mend the names in this script",
              file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
