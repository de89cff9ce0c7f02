#!/usr/bin/env python3
"""Bugs that users of other frameworks reported, made again in compiled plans, each beside a mended form.

NJUDeepEngine/llm-infra-verifier lists these three. Plans are edited as text. known_disasters_test.cc in test/Unit/Check has
more of them, in plans made by hand.
"""

import importlib.util
import json
import re

import tools

SCRIPT = tools.TEST_DIR.parent / "scripts" / "bench-overlap.py"
specification = importlib.util.spec_from_file_location("bench_overlap", SCRIPT)
bench_overlap = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench_overlap)

# As picture_test.py says, the cost model then has the same rates on every machine.
NO_CODE = [*tools.ONE_THREAD, "--target-cpu", "x86-64-v2", "--no-codegen"]
BUCKETS = ["--batch", "8", "--seq", "32", "--bucket-bytes", "4096"]


def program_at(lines, name):
    """The numbers of the lines of a program, which ends where the next one begins."""
    begin = next(i for i, line in enumerate(lines) if f"plan.program @{name} " in line)
    return range(begin, next((i for i in range(begin + 1, len(lines)) if "plan.program @" in lines[i]), len(lines)))


def stream_of(line):
    """The stream of a command for events; the first where the text names none."""
    return int((re.match(r" *plan\.\w+ \d+(?: on (\d+))?", line)[1]) or 0)


class ReportedBugs(tools.ToolTest):
    def compile(self, *flags, to="plan"):
        """The program after a phase, as text."""
        model, plan = tools.MODELS / "llama-tiny", self.folder / "compiled.plan"
        if to != "plan":
            return tools.succeed("bowline-compile", model, *flags, "--compile-to", to, "-o", "-").decode()
        tools.succeed("bowline-compile", model, *flags, "-o", plan)
        return tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode()

    def translate(self, text):
        file, plan = self.folder / "edited.mlir", self.folder / "edited.plan"
        file.write_text(text)
        tools.succeed("bowline-translate", "--mlir-to-plan", file, "-o", plan)
        return plan

    def refused(self, text, *says):
        plan = self.translate(text)
        done = tools.start("bowline-check", plan)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 2, message)
        for part in says:
            self.assertIn(part, message)
        return plan

    def accepted(self, text):
        plan = self.translate(text)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        return plan

    def run_plan(self, plan, *flags, ranks=2):
        return tools.start("bowline-run", plan, "--data", tools.TOKENS, "--steps", "2", "--nproc", ranks, *flags)

    def metrics(self, plan, *flags, ranks=2):
        file = self.folder / "metrics.jsonl"
        done = self.run_plan(plan, "--metrics", file, *flags, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics = tools.metrics_of(file)
        file.unlink()
        return metrics

    # deepspeedai/DeepSpeed 5545: with overlap_comm, ZeRO copies gradients into a bucket while a reduction of the bucket's
    # last contents, which runs on another stream, still reads them.

    @staticmethod
    def scatter_of(lines, gradient):
        """The number of the first reduce-scatter of a gradient in the training step, and its operand."""
        at = next(i for i in program_at(lines, "train_step_program")
                  if "reduce_scatter" in lines[i] and f"'{gradient}'" in lines[i])
        return at, re.search(r"@dp\((%[\w.]+)\)", lines[at])[1]

    def one_bucket(self, text, waits):
        """The plan in which two gradients of one layer go through the same buffer, behind all others in memory: nothing but
        the two touches its bytes. `waits`: the second is computed when the first has been read."""
        lines = text.splitlines(keepends=True)
        first, bucket = self.scatter_of(lines, "layers.0.mlp.w_up.grad")
        second, other = self.scatter_of(lines, "layers.0.mlp.w_gate.grad")
        self.assertLess(first, second)
        self.assertNotEqual(bucket, other, "the compiler gives each gradient a buffer of its own")
        named = re.compile(re.escape(other) + r"(?=[,)])")
        train = program_at(lines, "train_step_program")
        for i in train:
            lines[i] = named.sub(bucket, lines[i])

        if waits:
            writes, = (i for i in range(first, second) if "plan.launch" in lines[i] and re.search(
                re.escape(bucket) + r"(?=[,)])", lines[i]))
            event = 1 + max(int(found[1]) for i in train if (found := re.match(r" *plan\.signal (\d+)", lines[i])))
            lines.insert(writes, f"        plan.wait {event}\n")
            lines.insert(first + 1, f"        plan.signal {event} on 1\n")

        text = "".join(lines)
        end = int(re.search(r"plan\.arena_bytes = (\d+)", text)[1])
        begin = (end + 255) // 256 * 256
        where = re.compile(r"^( *" + re.escape(bucket) + r" = plan\.buffer .*<tensor<(\d+)x(\d+)xf32>> at )\d+",
                           re.MULTILINE)
        rows, columns = map(int, where.search(text).group(2, 3))
        text = where.sub(rf"\g<1>{begin}", text)
        return re.sub(r"plan\.arena_bytes = \d+", f"plan.arena_bytes = {begin + 4 * rows * columns}", text)

    def test_buckets_are_filled_while_they_are_summed(self):
        compiled = self.compile(*BUCKETS, *tools.ONE_THREAD, "--mesh", "dp=2", "--zero", "2", "--microbatches", "2")
        plan = self.refused(self.one_bucket(compiled, waits=False), "the proof of no race fails",
                            "reduce_scatter on 'dp'", "'layers.0.mlp.w_up.grad", "on stream 'dp', reads buffer",
                            "from gradient of model.layers.0.mlp.gate_proj", "on stream 'compute', writes buffer")
        done = self.run_plan(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the proof of no race fails", done.stderr.decode())

        # Two buffers, as the compiler has it; and one that is waited for.
        expected = self.metrics(self.accepted(compiled))
        plan = self.accepted(self.one_bucket(compiled, waits=True))
        self.assertEqual(self.metrics(plan), expected)
        self.assertEqual(self.metrics(plan, "--driver", "discrete:seed=1"), expected)

    # NVIDIA/Megatron-LM 107: sums over tensor-parallel and data-parallel ranks are on streams of their own, a card begins
    # them in the order that suits it, and another card begins them in the other order: each waits for the other.
    #
    # Ranks that differ in dp and tp alone have one program, so no plan can have them issue in two orders. Where a device
    # keeps the order of issue, all of them agree. A card that replays recorded commands does not keep it, and there events
    # have to.

    def sums_of_two_axes(self):
        """The lines of a plan for cards, and the numbers of those that make a sum over tp wait for one over dp, or the
        reverse."""
        text = self.compile(*BUCKETS, "--mesh", "dp=2,tp=2", "--target", "cuda", "--no-codegen", *tools.ONE_THREAD)
        lines = text.splitlines(keepends=True)
        train = program_at(lines, "train_step_program")
        streams = json.loads(re.search(r"streams (\[.*?\])", lines[train[0]])[1])
        self.assertEqual(set(streams), {"compute", "tp", "dp"})
        sums = {streams.index("tp"), streams.index("dp")}
        signals = {re.search(r"signal (\d+)", lines[i])[1]: stream_of(lines[i]) for i in train if "plan.signal " in lines[i]}
        waits = [i for i in train if "plan.wait " in lines[i]]
        return lines, [i for i in waits if {stream_of(lines[i]), signals[re.search(r"wait (\d+)", lines[i])[1]]} == sums]

    def test_sums_over_two_axes_begin_in_any_order(self):
        lines, waits = self.sums_of_two_axes()
        self.accepted("".join(lines))
        self.assertGreater(len(waits), 2)
        self.refused("".join(lines[:waits[0]] + lines[waits[0] + 1:]), "the proof of serial order fails",
                     "all_reduce on 'dp'", "all_reduce on 'tp'",
                     "a device that replays recorded commands may begin either first, another rank's the other")
        # Later waits also order reads of one stream after writes of another.
        for i in waits[1:]:
            with self.subTest(line=lines[i]):
                self.refused("".join(lines[:i] + lines[i + 1:]), "nothing orders the two")

    def test_all_ranks_issue_in_another_order(self):
        """On processors, which begin communications as they are issued, either order is right."""
        text = self.compile(*BUCKETS, "--mesh", "dp=2,tp=2", *tools.ONE_THREAD)
        expected = self.metrics(self.accepted(text), ranks=4)
        lines = text.splitlines(keepends=True)
        train = program_at(lines, "train_step_program")
        over_dp = next(i for i in train if "plan.collective" in lines[i] and "@dp(" in lines[i])
        over_tp = next(i for i in train if i > over_dp and "plan.collective" in lines[i])
        self.assertIn("@tp(", lines[over_tp])
        # With the wait for the event that it waits for.
        moved = lines[over_dp - 1:over_dp + 1]
        self.assertIn("plan.wait ", moved[0])
        edited = lines[:over_dp - 1] + lines[over_dp + 1:over_tp + 1] + moved + lines[over_tp + 1:]
        self.assertEqual(self.metrics(self.accepted("".join(edited)), ranks=4), expected)

    # The same between stages, whose programs differ, so that one of them can issue in another order than its peer.

    def test_one_stage_issues_in_another_order(self):
        flags = ["--mesh", "pp=2,dp=2,tp=2", "--microbatches", "2", *BUCKETS, *NO_CODE]
        text = re.sub(r" (order|values) \[[^\]]*\]", "", self.compile(*flags))  # what changed on purpose has no certificate
        self.accepted(text)
        lines = text.splitlines(keepends=True)
        stage = [i for i, line in enumerate(lines) if "plan.program @train_step_program " in line][1]
        calls = json.loads(re.search(r"timeline (\[.*?\])", lines[stage])[1])
        calls = list(zip(calls[::2], calls[1::2]))
        segments = re.findall(r'plan\.segment "(.*?)"', "".join(lines[i] for i in range(stage, len(lines))))
        self.assertEqual([segments[number] for number, _ in calls[-2:]], ["send_gradient.1", "train_update"])
        # The last stage sums over stages first, and sends the gradient that the first stage waits for afterwards.
        calls[-2:] = reversed(calls[-2:])
        timeline = ", ".join(str(number) for call in calls for number in call)
        lines[stage] = re.sub(r"timeline \[.*?\]", f"timeline [{timeline}]", lines[stage])
        self.refused("".join(lines), "the proof of no deadlock fails: 2 ranks wait for each other", "all_reduce on 'pp'",
                     "receive from place 1 of 'gradient.odd'")

    # pytorch/pytorch 64803: FSDP gathers parameters on the stream on which it scatters gradients, so that the gather for
    # the next layer, and with it the layer, waits for the gradients of the layer before. The results are right, and all
    # proofs hold. `bowline inspect --svg` reports it as exposed communication, and the predicted trace shows it: the
    # stream that computes stands still for longer.

    def timeline(self, text, *flags):
        """Of a program after the phase hoist, in seconds: a step, all of its communication, and the exposed part of it, for
        which the stream that computes waits for communication or is in it; and the number of streams."""
        file, plan, trace = (self.folder / f"zero3.{kind}" for kind in ("mlir", "plan", "json"))
        file.write_text(text)
        tools.succeed("bowline-compile", "--compile-from", "hoist", file, *flags, "-o", plan)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        tools.succeed("bowline-inspect", plan, "--trace", trace)
        streams = tools.slices_of(trace)
        events = [event for stream in streams.values() for event in stream]
        exposed, = bench_overlap.exposed_seconds(events)
        step = 1e-6 * max(event["ts"] + event["dur"] for event in events)
        communication = 1e-6 * sum(event["dur"] for event in events if event["cat"] == "communication")
        picture = self.folder / "zero3.svg"
        tools.succeed("bowline-inspect", plan, "--svg", picture)
        reported, = re.findall(r"([0-9.]+) % exposed communication", picture.read_text())
        self.assertAlmostEqual(float(reported), 100 * exposed / step, delta=0.06)
        return step, communication, exposed, len(streams)

    def test_gathers_and_scatters_share_a_stream(self):
        for prefetch in 1, 2:
            with self.subTest(prefetch=prefetch):
                shared = self.compile(*BUCKETS, *NO_CODE, "--mesh", "dp=2", "--zero", "3", "--prefetch", prefetch,
                                      to="hoist")
                # The compiler gives each communicator a stream.
                apart = re.sub(r"^( *plan\.communicator )@dp (.*\n)", r"\1@dp \2\1@scatter \2", shared, flags=re.MULTILINE)
                apart, scatters = re.subn(r"(plan\.collective +reduce_scatter +)@dp\b", r"\1@scatter", apart)
                self.assertGreater(scatters, 20)

                forms = [self.timeline(shared, "--disable-step", "overlap-commands"), self.timeline(shared),
                         self.timeline(apart)]
                self.assertEqual([streams for *_, streams in forms], [1, 2, 3])
                step, communication, serial, _ = forms[0]
                self.assertAlmostEqual(serial, communication, delta=1e-8)
                # Computations and communications take as long in each form: a step is longer by the exposed part alone.
                for other_step, other_communication, exposed, _ in forms[1:]:
                    self.assertAlmostEqual(other_communication, communication, delta=1e-8)
                    self.assertAlmostEqual(other_step - exposed, step - serial, delta=1e-8)
                _, one_stream, two_streams = (exposed for _, _, exposed, _ in forms)
                self.assertGreater(serial, 1.2 * one_stream)
                self.assertGreater(one_stream, 1.2 * two_streams)


if __name__ == "__main__":
    tools.main()
