#!/usr/bin/env python3
"""Checks that generated device functions move as many bytes per access as their data allow.

  scripts/check-access-widths.py LISTING KERNELS

LISTING is what `bowline compile --kernel-listing` wrote, KERNELS what `bowline inspect --kernels --json` says of the plan.
The integers of the PTX are executed for some threads of some blocks of each function, so that the address of every access
to global memory is known, and nothing is believed of the compiler that chose the widths. Pointers of arguments begin at a
multiple of 256 bytes, as buffers of plans do.

A *piece* is what one thread touches of one argument with instructions that follow one another in one basic block and lie
one behind the other in memory. Two rules are checked:

  split    a piece whose length and every place of which are multiples of w, at most 16 bytes, is moved by accesses of w
           bytes or more
  vector   threads 2i and 2i + 1 do not lie beside each other with pieces of less than 16 bytes where one thread could
           move both

The second rule allows a piece to stay narrow where

  broadcast  all threads of the pair read the same bytes
  strided    an access of the same threads does not go on from one thread to the next by its own length: rows that are
             transposed or gathered, or that are read by one thread each
  extent     somewhere only one thread of a pair is there, or fulfils the condition of another access (what is padded ends
             between them), or a pair straddles rows: the extent has no even number of vectors
  unaligned  the two pieces do not begin at a multiple of their length
  type       another argument of the same threads would need more than two accesses of 16 bytes
  tail       fewer than 8 threads have an element: what is left of a row behind its vectors of at most 8

Each function that breaks a rule is one line on stderr. Exit status: 0 when there is none, 1 otherwise, also when the
listing has no function.
"""

import collections
import functools
import json
import operator
import pathlib
import re
import sys

ACCESS_BYTES = 16
WARP = 32
# A vector has at most this many elements: 16 bytes of the narrowest type, while the widest takes at most two accesses.
VECTOR = 8
# Arguments lie so far apart that no offset leads from one to another.
SPACE = 48

ENTRY = re.compile(r"^\.visible \.entry ([\w$]+)\((.*?)\)\s*(.*?)^\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
THREADS = re.compile(r"\.reqntid (\d+)")
REGISTER = re.compile(r"%[a-z]+\d+")
ACCESS = re.compile(r"(ld|st)\.global((?:\.nc|\.relaxed|\.gpu|\.L\w+)*)(?:\.v(\d))?\.[a-z](\d+)")
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}


class UnknownInstruction(Exception):
    pass


# An access to global memory: the basic block that it is in, and its bytes.
Access = collections.namedtuple("Access", "block isStore width")


def split_operands(text):
    """By commas outside of braces."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|[^,{])+", text)]


def width_of(operation):
    return int(re.search(r"\.[busf](\d+)$", operation).group(1))


def local(register):
    return register[1:]


class Function:
    """A device function as a Python function that runs the integers of one thread."""

    def __init__(self, name, body):
        self.name = name
        self.accesses = []
        self.lines = []  # (block, predicate or None, operation, operands)
        labels = {}
        block = 0
        for line in body.splitlines():
            line = line.split("//")[0].strip()
            if match := re.match(r"(\$\w+):$", line):
                block += 1
                labels[match[1]] = block
                continue
            if not line or line.startswith((".reg", ".param", ".shared", ".loc", ".pragma", "{", "}")):
                continue
            match = re.match(r"(?:@(!?)(%p\d+)\s+)?([\w.]+)\s*(.*?);?$", line)
            predicate = match[2] and (("not " if match[1] else "") + local(match[2]))
            self.lines.append((block, predicate, match[3], split_operands(match[4])))
            if match[3].startswith("bra") or (predicate and match[3] in ("ret", "exit")):
                block += 1
        self.labels = labels
        self.run = self.compile(self.needed())

    @staticmethod
    def define(operation, operands):
        """The registers that an instruction writes."""
        writes = operands and not operation.startswith(("st.", "bra", "bar", "ret", "exit", "call", "membar", "fence"))
        return REGISTER.findall(operands[0]) if writes else []

    def needed(self):
        """The registers from which the function computes addresses and the predicates of branches."""
        needed = set()
        while True:
            before = len(needed)
            for _, predicate, operation, operands in self.lines:
                if predicate and (operation.startswith("bra") or operation in ("ret", "exit")):
                    needed.add("%" + predicate.split()[-1])
                if ACCESS.match(operation):
                    address = operands[1] if operation.startswith("ld") else operands[0]
                    needed.update(REGISTER.findall(address))
                elif needed.intersection(self.define(operation, operands)):
                    for operand in operands[1:]:
                        needed.update(REGISTER.findall(operand))
                if predicate and needed.intersection(self.define(operation, operands)):
                    needed.add("%" + predicate.split()[-1])
            if len(needed) == before:
                return needed

    def value(self, operand, signed=0):
        if operand.startswith("%"):
            special = {"%tid.x": "tid", "%ctaid.x": "ctaid", "%ntid.x": "ntid", "%nctaid.x": "nctaid"}.get(operand)
            text = special or local(operand)
        elif re.match(r"-?(\d+|0x[0-9A-Fa-f]+)$", operand):
            text = f"({operand})" if not signed else f"({operand} & {(1 << signed) - 1})"
        elif re.match(r"0[fd][0-9A-Fa-f]+$", operand):
            return "0"
        else:
            raise UnknownInstruction(f"operand {operand}")
        return f"(({text} ^ {1 << (signed - 1)}) - {1 << (signed - 1)})" if signed else text

    def integer(self, operation, operands):
        """The expression of an instruction's result."""
        name, *rest = operation.split(".")
        last = rest[-1] if rest else ""
        isFloat = bool(re.match(r"(f|bf)\d", last)) or (name == "cvt" and re.match(r"(f|bf)\d", rest[-2]))
        if isFloat or name in ("shfl", "ld"):
            # Numbers of the model: no address depends on them but that of an element that is looked up.
            return "0"
        if last == "pred":
            values = [self.value(operand) for operand in operands[1:]]
            return {"and": "{} and {}", "or": "{} or {}", "not": "not {}", "xor": "{} != {}", "mov": "{}"}[name].format(*values)
        bits = width_of(operation)
        mask = (1 << bits) - 1
        signed = bits if last[0] == "s" else 0
        plain = [self.value(operand) for operand in operands[1:]]
        ordered = [self.value(operand, signed) for operand in operands[1:4 if name == "mad" else 3]]
        if name in ("mov", "cvta"):
            return f"{plain[0]} & {mask}"
        if name in BINARY:
            return f"({plain[0]} {BINARY[name]} {plain[1]}) & {mask}"
        if name == "not":
            return f"~{plain[0]} & {mask}"
        if name == "neg":
            return f"-{plain[0]} & {mask}"
        if name == "shl":
            return f"({plain[0]} << {plain[1]}) & {mask}"
        if name == "shr":
            return f"({self.value(operands[1], signed)} >> {plain[1]}) & {mask}"
        if name in ("mul", "mad"):
            # Immediates are signed; the bits of registers are read without a sign.
            factors = [ordered[0] if signed else f"({plain[0]} & {mask})", ordered[1] if signed else f"({plain[1]} & {mask})"]
            product = f"{factors[0]} * {factors[1]}"
            if rest[0] == "hi":
                product = f"(({product}) >> {bits})"
            elif rest[0] == "wide":
                mask = (1 << 2 * bits) - 1
            return f"({product}{' + ' + plain[2] if name == 'mad' else ''}) & {mask}"
        if name in ("div", "rem") and not signed:
            return f"({plain[0]} & {mask}) {'//' if name == 'div' else '%'} ({plain[1]} & {mask})"
        if name in ("min", "max"):
            values = ordered if signed else [f"({v} & {mask})" for v in plain]
            return f"{name}({values[0]}, {values[1]}) & {mask}"
        if name == "setp" and len(rest) == 2:
            values = ordered if signed else [f"({v} & {mask})" for v in plain]
            return f"{values[0]} {COMPARE[rest[0]]} {values[1]}"
        if name == "selp":
            return f"({plain[0]} if {local(operands[3])} else {plain[1]}) & {mask}"
        if name == "cvt":
            to, source = (re.match(r"([us])(\d+)$", part) for part in rest[-2:])
            extended = self.value(operands[1], int(source[2])) if source[1] == "s" else f"{plain[0]} & {(1 << int(source[2])) - 1}"
            return f"({extended}) & {(1 << int(to[2])) - 1}"
        if name == "bfe" and not signed:
            return f"({plain[0]} >> {plain[1]}) & ((1 << {plain[2]}) - 1)"
        raise UnknownInstruction(f"{operation} {', '.join(operands)}")

    def compile(self, needed):
        code = collections.defaultdict(list)
        last = max(block for block, *_ in self.lines)
        registers = sorted({local(register) for register in needed})
        for block, predicate, operation, operands in self.lines:
            text = None
            if operation.startswith("bra"):
                text = f"pc = {self.labels[operands[0]]}; continue"
            elif operation in ("ret", "exit"):
                text = "return"
            elif match := ACCESS.match(operation):
                isStore = match[1] == "st"
                address = operands[0] if isStore else operands[1]
                base, offset = re.match(r"\[(%\w+)((?:\+-?\d+)?)\]$", address).groups()
                width = int(match[3] or 1) * int(match[4]) // 8
                code[block].append(f"touch({len(self.accesses)}, {local(base)}{offset or '+0'})")
                self.accesses.append(Access(block, isStore, width))
                wanted = [register for register in self.define(operation, operands) if register in needed]
                text = "; ".join(f"{local(register)} = 0" for register in wanted) or None
            elif operation.startswith("ld.param"):
                match = re.match(r"\[\w+_param_(\d+)\]$", operands[1])
                text = f"{local(operands[0])} = {(int(match[1]) + 1) << SPACE if match else 0}"
            elif wanted := [register for register in self.define(operation, operands) if register in needed]:
                if len(wanted) > 1 or operands[0].startswith("{"):
                    raise UnknownInstruction(f"{operation} {', '.join(operands)}")
                text = f"{local(wanted[0])} = {self.integer(operation, operands)}"
            if text:
                code[block].append(f"if {predicate}: {text}" if predicate else text)
        source = ["def run(tid, ctaid, ntid, nctaid, touch, enter):", "  pc = 0", *(f"  {r} = 0" for r in registers), "  while True:"]
        for block in range(last + 1):
            source.append(f"    if pc == {block}:")
            source.append(f"      enter({block})")
            source += [f"      {line}" for line in code[block]]
            source.append(f"      pc = {block + 1}")
        source.append("    if pc > %d: return" % last)
        scope = {}
        exec("\n".join(source), scope)  # pylint: disable=exec-used
        return scope["run"]


class Threads:
    """Runs threads of a grid, and keeps the visits of each: by basic block and (block, thread) a list of visits, which are
    {access: address}."""

    def __init__(self, function, blocks, threads):
        self.function, self.blocks, self.threads = function, blocks, threads
        self.visits = collections.defaultdict(lambda: collections.defaultdict(list))
        self.seen, self.done = set(), set()

    def run(self, ctaid, tids):
        for tid in tids:
            if (ctaid, tid) in self.done:
                continue
            self.done.add((ctaid, tid))
            current = {}

            def enter(block):
                nonlocal current
                current = {}
                self.visits[block][ctaid, tid].append(current)

            def touch(access, address):
                self.seen.add(access)
                current[access] = address

            self.function.run(tid, ctaid, self.threads, self.blocks, touch, enter)

    def touches(self, ctaid, access):
        self.run(ctaid, [0, 1])  # no thread without its partner
        return any(access in entry for entry in self.visits[self.function.accesses[access].block][ctaid, 0])

    def run_sample(self):
        """The first two warps and the last one of some blocks, until each access was seen, and then for each access all
        threads of the last block that has it, for some may have nothing to do there."""
        warps = sorted({0, 1, self.threads // WARP - 1} & set(range(self.threads // WARP)))
        count = 8
        while True:
            chosen = sorted({0, 1, 2, self.blocks - 1, *(self.blocks * i // count for i in range(count))} & set(range(self.blocks)))
            for ctaid in chosen:
                self.run(ctaid, (warp * WARP + lane for warp in warps for lane in range(WARP)))
            if len(self.seen) == len(self.function.accesses) or count >= 64:
                break
            count *= 2
        for access in {min(a for a in self.seen if self.function.accesses[a].block == block)
                       for block in {self.function.accesses[a].block for a in self.seen}}:
            last = max((ctaid for ctaid in chosen if self.touches(ctaid, access)), default=None)
            if last is None:
                continue
            beyond = min((ctaid for ctaid in chosen if ctaid > last), default=self.blocks)
            while beyond - last > 1:
                middle = (last + beyond) // 2
                if self.touches(middle, access):
                    last = middle
                else:
                    beyond = middle
            # Threads of a block end in order: where the last one has something to do, all have.
            self.run(last, [self.threads - 2, self.threads - 1])
            if not any(access in entry for entry in self.visits[self.function.accesses[access].block][last, self.threads - 1]):
                self.run(last, range(self.threads))


def largest_power(number, most):
    power = 1
    while power < most and number % (2 * power) == 0:
        power *= 2
    return power


def common_alignment(places):
    """The largest power of two, at most 16, that divides all of them: it divides the bitwise or of all places."""
    return largest_power(functools.reduce(operator.or_, places, 0), ACCESS_BYTES)


class Piece:
    """`members` are accesses of one argument that lie one behind the other in every visit."""

    def __init__(self, function, members, visits):
        self.members = members
        self.widths = [function.accesses[m].width for m in members]
        self.length = sum(self.widths)
        # (block of the grid, visit) -> thread -> where the piece begins.
        self.places = collections.defaultdict(dict)
        for (ctaid, tid), entries in visits.items():
            for n, entry in enumerate(entries):
                if members[0] in entry:
                    self.places[ctaid, n][tid] = entry[members[0]]
        # Most visits are of the same threads.
        self.sets = {tuple(threads) for threads in self.places.values()}
        first = next(iter(next(iter(self.places.values())).values()))
        self.name = f"{'store to' if function.accesses[members[0]].isStore else 'load of'} argument {(first >> SPACE) - 1}"

    def alignment(self):
        return common_alignment(place for threads in self.places.values() for place in threads.values())

    def isBroadcast(self):
        return all(len(set(threads.values())) == 1 for threads in self.places.values() if len(threads) > 1)

    def splits_pair_of(self, visitors):
        """Whether one of two partners that are both among `visitors` touches the piece and the other does not. Tails do not
        count: their threads are behind in the row."""
        return any(longest_run(threads) >= VECTOR and any(tid ^ 1 not in threads and tid ^ 1 in visitors for tid in threads)
                   for threads in map(set, self.sets))

    def longest_run(self):
        """The largest number of neighbours of one warp that touch the piece in one visit."""
        return max(map(longest_run, self.sets))

    def pairs(self):
        """(whether a thread lacks its partner, the distances of partners, the places of first partners)."""
        lacks, steps, places = False, set(), []
        for threads in self.places.values():
            for tid, place in threads.items():
                partner = threads.get(tid ^ 1)
                lacks |= partner is None
                if tid % 2 == 0 and partner is not None:
                    steps.add(partner - place)
                    places.append(place)
        return lacks, steps, places


def pieces_of(function, block, visits):
    members = [a for a, access in enumerate(function.accesses) if access.block == block]
    entries = [entry for lists in visits.values() for entry in lists if entry]
    if not entries:
        return []
    # Predicated ones are missing in some visits; they stand alone.
    whole = [m for m in members if all(m in entry for entry in entries)]
    groups = [[m] for m in members if m not in whole and any(m in entry for entry in entries)]
    order = sorted(whole, key=lambda m: (function.accesses[m].isStore, entries[0][m]))
    for m in order:
        before = groups[-1][-1] if groups else None
        if before in whole and function.accesses[before].isStore == function.accesses[m].isStore and all(
                entry[m] == entry[before] + function.accesses[before].width for entry in entries):
            groups[-1].append(m)
        else:
            groups.append([m])
    return [Piece(function, group, visits) for group in groups]


def check_function(function, blocks, threads):
    """The errors found in the function, one sentence each."""
    grid = Threads(function, blocks, threads)
    grid.run_sample()
    errors = [f"access {a} of {function.accesses[a].width} bytes was executed by no thread that was tried"
              for a in range(len(function.accesses)) if a not in grid.seen]
    pieces = {block: pieces_of(function, block, grid.visits[block]) for block in {a.block for a in function.accesses}}
    for block, inside in pieces.items():
        for piece in inside:
            wanted = min(piece.alignment(), largest_power(piece.length, ACCESS_BYTES))
            if min(piece.widths) < wanted and not piece.isBroadcast():
                errors.append(f"split: the {piece.name} moves {piece.length} bytes in accesses of {min(piece.widths)}, "
                              f"and every place of it is a multiple of {wanted}")
        others = [piece for other in pieces.values() if other is not inside for piece in other]
        if error := check_vector(inside, others, {who[1] for who in grid.visits[block]}):
            errors.append(error)
    return errors


def longest_run(threads):
    """The largest number of neighbours of one warp among `threads`."""
    longest = run = 0
    for tid in sorted(threads):
        run = run + 1 if tid % WARP and tid - 1 in threads else 1
        longest = max(longest, run)
    return longest


def check_vector(pieces, others, visitors):
    """`others` are those of other basic blocks, `visitors` the numbers of the threads that touch `pieces`."""
    if any(piece.splits_pair_of(visitors) for piece in others):
        return None  # extent
    wide = 0
    narrow = None
    for piece in pieces:
        lacks, steps, places = piece.pairs()
        if lacks:
            return None  # extent
        if steps == {0}:
            continue  # broadcast
        if steps != {piece.length}:
            return None  # strided, or pairs that straddle rows
        if piece.longest_run() < VECTOR:
            return None  # tail
        wide = max(wide, 2 * piece.length)
        aligned = common_alignment(places) >= min(2 * piece.length, ACCESS_BYTES)
        if piece.length < ACCESS_BYTES and aligned:
            narrow = narrow or piece
    if narrow is None or wide > 2 * ACCESS_BYTES:
        return None  # unaligned, or type
    return (f"vector: the {narrow.name} moves {narrow.length} bytes per thread, where its neighbour's bytes follow and "
            "one thread could move both")


def check(listing, kernels):
    """The number of functions, and the errors by function. `kernels` is the array of bowline-inspect."""
    grids = {re.sub(r"\W", "_", kernel["name"]): kernel["grid"] for kernel in kernels if kernel.get("grid")}
    ptx = listing.split("// PTX\n", 1)[-1].split("// ptxas\n")[0]
    functions, errors = 0, []
    for name, _, attributes, body in ENTRY.findall(ptx):
        functions += 1
        if name not in grids:
            errors.append(f"{name}: the plan has no kernel of this name; take the listing of the same compilation")
            continue
        blocks, = grids[name]["blocks"]
        try:
            found = check_function(Function(name, body), blocks, int(THREADS.search(attributes)[1]))
        except UnknownInstruction as unknown:
            found = [f"scripts/check-access-widths.py does not know '{unknown}'; add it there"]
        errors += [f"{name}: {error}" for error in found]
    return functions, errors


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    kernels = json.loads(pathlib.Path(sys.argv[2]).read_text())["kernels"]
    functions, errors = check(pathlib.Path(sys.argv[1]).read_text(), kernels)
    print("".join(f"{error}\n" for error in errors), end="", file=sys.stderr)
    if functions == 0:
        print(f"{sys.argv[1]}: has no device function; was it written for --target cuda?", file=sys.stderr)
        return 1
    print(f"accesses: {functions} functions, {len(errors)} narrower than they could be")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
