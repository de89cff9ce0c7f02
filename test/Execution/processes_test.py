#!/usr/bin/env python3
"""Ranks as processes do what ranks as threads do, by every launcher, and say who broke the run when one fails."""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import tools

MODEL = "llama-tiny"
MESHES = {"dp=2": 2, "tp=2": 2, "pp=2": 2, "dp=2,tp=2": 4}
LAUNCHER_VARIABLES = re.compile(r"^(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_|OMPI_|PMI_|PMIX_|MPI_|SLURM_|TORCHELASTIC_)")


def environment(**more):
    clean = {key: value for key, value in os.environ.items() if not LAUNCHER_VARIABLES.match(key)}
    return {**clean, "BOWLINE_CACHE_DIR": "off", **{key: str(value) for key, value in more.items()}}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun(rank, size, port, host="127.0.0.1"):
    return environment(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=rank, MASTER_ADDR=host, MASTER_PORT=port)


def is_running(pid):
    """Whether there is a process, dead ones that nobody asked for left out."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def tree_of(folder):
    """The files of a folder into which a run saved, but for who saved, and the name of the run."""
    return {path.relative_to(folder): re.sub(rb'"run": ?"\w+"', b"", path.read_bytes())
            for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"}


class Finished(NamedTuple):
    code: int
    out: str
    err: str

    def errors(self):
        return [line for line in self.err.splitlines() if "error: " in line]


class ProcessTest(tools.ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.plan_folder = pathlib.Path(tempfile.mkdtemp(prefix="bowline-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.plan_folder, ignore_errors=True)

    def plan(self, mesh, *flags):
        """A training plan for `mesh`, compiled once."""
        path = self.plan_folder / ("_".join([mesh, *flags]).replace("/", "") + ".plan")
        if not path.exists():
            tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "train", "--batch", 4, "--seq", 7,
                          "--mesh", mesh, *tools.ONE_THREAD, *flags, "-o", path)
        return path

    def begin(self, *arguments, env=None, before=(), cwd=None):
        command = [*before, tools.tool("bowline-run"), *map(str, tools.on_test_driver(arguments))]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=env or environment(), cwd=cwd)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    @staticmethod
    def finish(process):
        out, err = process.communicate(timeout=tools.TIMEOUT_SECONDS)
        return Finished(process.returncode, out, err)

    def run_plan(self, *arguments, **keywords):
        return self.finish(self.begin(*arguments, **keywords))

    def succeed(self, *arguments, **keywords):
        done = self.run_plan(*arguments, **keywords)
        self.assertEqual(done.code, 0, done.err)
        return done

    def train(self, plan, *arguments, name="m.jsonl", steps=3, **keywords):
        """The metrics of a run."""
        metrics = self.folder / name
        metrics.unlink(missing_ok=True)
        self.succeed(plan, "--data", tools.TOKENS, "--steps", steps, "--metrics", metrics, *arguments, **keywords)
        return tools.metrics_of(metrics)

    def wait_for_step(self, metrics, process, step=2):
        """Until a run has done some steps, which `process` must survive."""
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while not metrics.exists() or metrics.read_text().count("\n") < step:
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), until, "it takes no steps")
            time.sleep(0.01)


class SameAsThreads(ProcessTest):
    def test_nproc_trains_evaluates_and_saves_as_threads_do(self):
        for mesh, ranks in MESHES.items():
            with self.subTest(mesh=mesh):
                plan = self.plan(mesh, *(["--microbatches", "2"] if "pp" in mesh else []))
                flags = ["--eval-data", tools.TOKENS, "--eval-every", 2, "--eval-batches", 3, "--save-every", 2]
                trees = []
                for name, how in (("threads", []), ("processes", ["--nproc", ranks])):
                    save = self.folder / mesh / name
                    metrics = self.train(plan, *flags, "--save", save, *how, steps=4, name=f"{mesh}-{name}.jsonl")
                    trees.append((metrics, tree_of(save)))
                self.assertEqual(len(trees[0][0]), 6)
                self.assertEqual(trees[0][0], trees[1][0])
                self.assertGreater(len(trees[0][1]), 4)
                self.assertEqual(trees[0][1], trees[1][1])
                # Processes resume from checkpoints of threads, and threads from checkpoints of processes.
                for name, how in (("threads", ["--nproc", ranks]), ("processes", [])):
                    metrics = self.train(plan, "--resume", self.folder / mesh / name, *how, steps=6, name="r.jsonl")
                    trees.append((metrics, None))
                self.assertEqual(trees[2][0], trees[3][0])
                self.assertEqual([line["step"] for line in trees[2][0]], [5, 6])

    def test_zero_and_emulated_links(self):
        plan = self.plan("dp=2", "--zero", "3")
        link = ["--link", "dp:bandwidth=1GB/s,latency=20us"]
        threads = self.train(plan)
        self.assertEqual(threads, self.train(plan, "--nproc", 2))
        self.assertEqual(threads, self.train(plan, "--nproc=2", *link))

    def test_evaluation_alone_prints_once(self):
        plan = self.plan("tp=2")
        flags = ["--eval-data", tools.TOKENS, "--weights", tools.MODELS / MODEL]
        threads, processes = self.succeed(plan, *flags), self.succeed(plan, *flags, "--nproc", 2)
        self.assertRegex(threads.out, r"^evaluation loss [0-9.]+ over [0-9]+ tokens\n$")
        self.assertEqual(threads.out, processes.out)

    def test_logs_have_the_rank_before_them_and_come_once(self):
        done = self.succeed(self.plan("tp=2"), "--data", tools.TOKENS, "--steps", 2, "--nproc", 2)
        lines = done.err.splitlines()
        self.assertEqual(done.out, "")
        self.assertEqual(len(lines), 3, done.err)
        for line, pattern in zip(lines, ("tp=2.plan: 28 tokens a step", r"step 1/2  loss", r"step 2/2  loss")):
            self.assertRegex(line, r"^\[rank 0\] .*" + pattern)

    # One rank says it, and nothing else is said.
    OUTGROWN = r"^(\[rank 0\] )?bowline-run: note: the text becomes longer than the 29 tokens that the plan sees [^\n]*\n$"

    def generation(self, mesh):
        path = self.plan_folder / f"generate-{mesh}.plan"
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "generate", "--seq", 29, *tools.ONE_THREAD,
                      *(["--mesh", mesh] if mesh else []), "-o", path)
        return path

    def test_generation(self):
        flags = ["--weights", tools.MODELS / MODEL, "--prompt", "In the", "--max-new-tokens", 40, "--seed", 5, "--echo"]
        texts = set()
        for mesh, ranks in (("", 1), ("tp=2", 2), ("tp=4", 4)):
            plan = self.generation(mesh)
            for how in ([], ["--nproc", ranks]):
                process = subprocess.run([tools.tool("bowline-run"), plan, *map(str, flags + how)], capture_output=True,
                                         timeout=tools.TIMEOUT_SECONDS, env=environment(), check=True)
                self.assertRegex(process.stderr.decode(), self.OUTGROWN)
                self.assertEqual(len(process.stdout), 46)
                texts.add(process.stdout)
        # The sums of tp are rounded otherwise, which no choice here hangs on.
        self.assertEqual(len(texts), 1, texts)

    def test_a_reader_of_the_text_that_leaves_ends_all_ranks(self):
        plan = self.generation("tp=2")
        command = f"'{tools.tool('bowline-run')}' '{plan}' --weights '{tools.MODELS / MODEL}' --prompt A " \
                  "--max-new-tokens 1000000 $HOW | head -c 5 | wc -c; exit ${PIPESTATUS[0]}"
        for how in ("", "--nproc 2"):
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment(HOW=how),
                                  timeout=tools.TIMEOUT_SECONDS)
            self.assertEqual((done.stdout.strip(), done.returncode), ("5", 0))
            self.assertRegex(done.stderr, self.OUTGROWN)


class Launchers(ProcessTest):
    def setUp(self):
        super().setUp()
        self.threads = self.train(self.plan("tp=2"))

    def train_by_hand(self, plan, ranks, of_rank, arguments=lambda rank: []):
        """The metrics of a run whose process of each rank has the environment that `of_rank` says."""
        metrics = self.folder / "by-hand.jsonl"
        metrics.unlink(missing_ok=True)
        processes = [self.begin(plan, "--data", tools.TOKENS, "--steps", 3, "--metrics", metrics, *arguments(rank),
                                env=of_rank(rank)) for rank in range(ranks)]
        for rank, process in enumerate(processes):
            done = self.finish(process)
            self.assertEqual(done.code, 0, done.err)
            if rank > 0:
                self.assertEqual(done.out + done.err, "")
        return tools.metrics_of(metrics)

    def test_torchrun(self):
        port = free_port()
        self.assertEqual(self.threads, self.train_by_hand(self.plan("tp=2"), 2, lambda rank: torchrun(rank, 2, port)))

    def test_slurm(self):
        def step(rank):
            return environment(SLURM_JOB_ID=os.getpid(), SLURM_STEP_ID=0, SLURM_PROCID=rank, SLURM_STEP_NUM_TASKS=2,
                               SLURM_LOCALID=rank, SLURM_STEP_NODELIST="127.0.0.1")
        self.assertEqual(self.threads, self.train_by_hand(self.plan("tp=2"), 2, step))

    def test_flags(self):
        meet = f"file:{self.folder / 'meet'}"
        flags = lambda rank: ["--rank", rank, "--world-size", 2, "--rendezvous", meet]
        self.assertEqual(self.threads, self.train_by_hand(self.plan("tp=2"), 2, lambda rank: environment(), flags))

    def test_mpirun(self):
        for mesh in ("tp=2", "dp=2,tp=2"):
            metrics = self.folder / f"mpi-{mesh}.jsonl"
            done = subprocess.run(
                ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,tcp",
                 "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo", "-n", str(MESHES[mesh]),
                 tools.tool("bowline-run"), self.plan(mesh), "--data", tools.TOKENS, "--steps", "3", "--metrics",
                 metrics],
                capture_output=True, text=True, timeout=tools.TIMEOUT_SECONDS, env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(tools.metrics_of(metrics), self.threads if mesh == "tp=2" else self.train(self.plan(mesh)))


class Refusals(ProcessTest):
    def refuse(self, says, *arguments, code=1, **keywords):
        """One message that holds `says`."""
        done = self.run_plan(*arguments, **keywords)
        self.assertEqual(done.code, code, done.err)
        self.assertEqual(len(done.errors()), 1, done.err)
        for word in says if isinstance(says, tuple) else (says,):
            self.assertIn(word, done.err)
        self.assertEqual(done.out, "")

    def differ(self, says, *arguments_of_ranks):
        """Ranks that are started with different arguments; all must say the same."""
        port = free_port()
        size = len(arguments_of_ranks)
        processes = [self.begin(*arguments, env=torchrun(rank, size, port))
                     for rank, arguments in enumerate(arguments_of_ranks)]
        for rank, process in enumerate(processes):
            done = self.finish(process)
            self.assertEqual(done.code, 1, done.err)
            self.assertEqual(done.err, f"bowline-run: error: on rank {rank}: the ranks do not agree on {says}; "
                             "start all ranks with the same plan and options\n")

    def test_ranks_that_differ(self):
        plan = self.plan("tp=2")
        run = [plan, "--data", tools.TOKENS, "--steps", 3]
        save = [*run, "--save", self.folder / "a"]
        for plain, given, says in (
                (run, ["--timeout", 7], "--timeout: rank 0 has '300', but rank 1 has '7'"),
                (run, ["--order", "shuffle"], "--order: rank 0 has 'not given', but rank 1 has 'shuffle'"),
                (run, ["--allow-non-finite"], "--allow-non-finite: rank 0 has 'not given', but rank 1 has 'true'"),
                (save, ["--keep", 2], "--keep: rank 0 has 'not given', but rank 1 has '2'"),
                (run, ["--save", "b"], "--save: rank 0 has 'not given', but rank 1 has 'b'")):
            self.differ(says, plain, plain + given)
        self.differ("--steps: rank 0 has '3', but rank 1 has '4'", run, [*run[:-1], 4])

    def test_plans_and_contents_that_differ(self):
        run = ["--data", tools.TOKENS, "--steps", 3]
        hashes = []
        for plan in (self.plan("tp=2"), self.plan("tp=2", "--lr", "0.5")):
            text = tools.succeed("bowline-inspect", plan).decode()
            hashes.append(re.search(r"content_hash +([0-9a-f]+)", text)[1])
        self.differ(f"the plan (its content_hash): rank 0 has '{hashes[0]}', but rank 1 has '{hashes[1]}'",
                    [self.plan("tp=2"), *run], [self.plan("tp=2", "--lr", "0.5"), *run])
        # Where a file lies is no difference; one byte in it is.
        same, other = self.folder / "same.bin", self.folder / "other.bin"
        content = bytearray(tools.TOKENS.read_bytes())
        same.write_bytes(content)
        content[-2] ^= 1
        other.write_bytes(content)
        port = free_port()
        processes = [self.begin(self.plan("tp=2"), "--data", data, "--steps", 1, env=torchrun(rank, 2, port))
                     for rank, data in enumerate((tools.TOKENS, same))]
        for process in processes:
            self.assertEqual(self.finish(process).code, 0)
        port = free_port()
        processes = [self.begin(self.plan("tp=2"), "--data", data, "--steps", 1, env=torchrun(rank, 2, port))
                     for rank, data in enumerate((tools.TOKENS, other))]
        for process in processes:
            done = self.finish(process)
            self.assertEqual(done.code, 1)
            self.assertRegex(done.err, r"the ranks do not agree on the contents of --data: rank 0 has '\d+ bytes, "
                                       r"sha256 of samples \w+', but rank 1 has '\d+ bytes, sha256 of samples \w+'; ")

    def test_lists_of_data_that_differ(self):
        tokens = tools.random_tokens(400, 257)
        for name, content in (("a", tools.llmc_file(tokens)), ("b", tools.llmc_file(tokens[::-1])),
                              ("c", tools.llmc_file(tokens[:-1] + [0 if tokens[-1] else 1]))):
            (self.folder / name).write_bytes(content)
        # A Megatron index, which two files of as many tokens share.
        index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", 400, 0, 0, 1)
        for name, ids in (("m", tokens), ("n", tokens[::-1])):
            (self.folder / f"{name}.idx").write_bytes(index)
            (self.folder / f"{name}.bin").write_bytes(struct.pack("<400H", *ids))
        for flag, ours, theirs in (("--data", ["a", "b"], ["a", "c"]),
                                   ("--data", ["a", "b"], ["b", "a"]),
                                   ("--data", ["a", "b"], ["a"]),
                                   ("--data", ["0.7:a", "0.3:b"], ["0.6:a", "0.4:b"]),
                                   ("--data", ["0.7:a", "0.3:b"], ["a", "b"]),
                                   ("--data", ["m"], ["n"]),
                                   ("--data", ["m.idx"], ["n.idx"]),
                                   ("--data", ["m.bin"], ["n.bin"]),
                                   ("--eval-data", ["a", "b"], ["a", "c"])):
            run = [self.plan("tp=2"), "--steps", 1, *(["--data", tools.TOKENS] if flag == "--eval-data" else [])]
            arguments = []
            for files in (ours, theirs):
                paths = [re.sub(r"[a-z.]+$", lambda name: str(self.folder / name[0]), file) for file in files]
                arguments.append([*run, *(word for path in paths for word in (flag, path))])
            port = free_port()
            processes = [self.begin(*words, env=torchrun(rank, 2, port)) for rank, words in enumerate(arguments)]
            for process in processes:
                done = self.finish(process)
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, f"the ranks do not agree on the contents of {flag}: rank 0 has '.* bytes, sha256 "
                                           r"of samples \w+.*', but rank 1 has '.* bytes, sha256 of samples \w+")

    def test_numbers_of_ranks_that_do_not_match(self):
        plan = self.plan("dp=2,tp=2")
        run = [plan, "--data", tools.TOKENS, "--steps", 3]
        self.refuse(("is for 4 ranks (dp=2, tp=2), but --nproc says that 3 processes run it", "start 4, or compile the "
                     "model for a mesh of 3"), *run, "--nproc", 3)
        self.refuse(("is for 4 ranks", "but WORLD_SIZE says that 1 process runs it; start 4"), *run,
                    env=environment(RANK=0, WORLD_SIZE=1))
        self.refuse("--nproc", *run, "--nproc", 0)
        self.refuse("--nproc", *run, "--nproc", "two")
        self.refuse(("RANK says that this is rank 1 of 4 processes", "leave out --nproc"), *run, "--nproc", 4,
                    env=environment(RANK=1, WORLD_SIZE=4))
        self.refuse(("--nproc starts all ranks", "--rank"), *run, "--nproc", 4, "--rank", 0)
        port = free_port()
        for process in [self.begin(*run, env=torchrun(rank, 2, port)) for rank in range(2)]:
            done = self.finish(process)
            self.assertEqual(done.code, 1, done.err)
            self.assertIn("is for 4 ranks (dp=2, tp=2), but WORLD_SIZE says that 2 processes run it; start 4", done.err)
            self.assertEqual(len(done.errors()), 1)
        # Nobody waits for ranks that the plan does not have.
        self.refuse(("is for 4 ranks", "but --world-size says that 8 processes run it"), *run, "--rank", 0,
                    "--world-size", 8, "--rendezvous", f"file:{self.folder / 'meet'}")
        one_rank = self.folder / "one.plan"
        tools.compile_train(MODEL, one_rank)
        self.refuse(("is for 1 rank,", "start 1, or compile the model for a mesh of 2"), one_rank, "--data",
                    tools.TOKENS, "--steps", 3, "--nproc", 2)

    def test_what_is_wrong_on_all_ranks_is_said_once(self):
        plan = self.plan("tp=2")
        self.refuse("training needs --steps", plan, "--data", tools.TOKENS, "--nproc", 2)
        self.refuse("--max-new-tokens", plan, "--data", tools.TOKENS, "--steps", 1, "--max-new-tokens", 3, "--nproc", 2)
        self.refuse("no-such.plan", self.folder / "no-such.plan", "--nproc", 2)
        self.refuse(("no-such.bin", "No such file"), plan, "--data", self.folder / "no-such.bin", "--steps", 1,
                    "--nproc", 2)
        self.refuse("do not fit", plan, "--data", tools.TOKENS, "--steps", 1, "--weights", tools.MODELS / "qwen2-tiny",
                    "--nproc", 2)
        self.refuse(("--link", "its axes are tp"), plan, "--data", tools.TOKENS, "--steps", 1, "--link", "pp:latency=1us",
                    "--nproc", 2)

    def test_where_ranks_meet(self):
        run = [self.plan("tp=2"), "--data", tools.TOKENS, "--steps", 3, "--rendezvous-timeout", "0.5"]
        self.refuse(("WORLD_SIZE is not; set both"), *run, env=environment(RANK=0))
        self.refuse(("RANK=2", "ranks are 0 to 1"), *run, env=environment(RANK=2, WORLD_SIZE=2))
        self.refuse(("nothing says where they meet", "--rendezvous", "MASTER_ADDR"), *run,
                    env=environment(RANK=1, WORLD_SIZE=2))
        self.refuse("file:PATH", *run, "--rank", 0, "--world-size", 2, "--rendezvous", "somewhere")
        self.refuse("is no port", *run, "--rank", 0, "--world-size", 2, "--rendezvous", "localhost:70000")
        by_hand = ["--rank", 1, "--world-size", 2, "--rendezvous"]
        port = free_port()
        self.refuse((f"rank 1 did not find rank 0 at 127.0.0.1:{port} within 0.5 s", "Connection refused"), *run,
                    *by_hand, f"127.0.0.1:{port}", code=3)
        self.refuse("did not find rank 0 at file:", *run, *by_hand, f"file:{self.folder / 'nobody'}", code=3)
        self.refuse("no-such-host.invalid", *run, *by_hand, "no-such-host.invalid:29500", code=3)
        self.refuse("rank 1 of 2 did not come within 0.5 s", *run, env=torchrun(0, 2, port), code=3)

    def test_two_processes_with_the_same_rank_or_other_sizes(self):
        run = [self.plan("dp=2,tp=2"), "--data", tools.TOKENS, "--steps", 3, "--rendezvous-timeout", 3]
        port = free_port()
        processes = [self.begin(*run, env=torchrun(rank, 4, port)) for rank in (0, 1, 1)]
        processes.append(self.begin(*run, env=torchrun(2, 3, port)))
        done = [self.finish(process) for process in processes]
        self.assertEqual([len(one.errors()) for one in done], [1, 1, 1, 1])
        self.assertEqual(sorted(one.code for one in done[1:3]), [1, 3])
        refused = done[1] if done[1].code == 1 else done[2]
        self.assertRegex(refused.err, "two processes are rank 1: .*give each a rank of its own")
        self.assertRegex(done[0].err, "ranks 2, 3 of 4 did not come within 3 s")
        self.assertEqual(done[3].code, 1)
        self.assertRegex(done[3].err, "is for 4 ranks .*, but WORLD_SIZE says that 3 processes run it; start 4")

    def test_two_processes_with_the_same_rank_at_a_file_and_what_a_crash_leaves(self):
        meet, metrics = self.folder / "meet", self.folder / "m.jsonl"
        run = [self.plan("tp=2"), "--data", tools.TOKENS, "--metrics", metrics, "--world-size", 2, "--rendezvous",
               f"file:{meet}"]
        processes = [self.begin(*run, "--steps", 10**6, "--rank", rank) for rank in (0, 1)]
        self.wait_for_step(metrics, processes[0])
        for rank, first in enumerate(processes):
            self.refuse((f"rendezvous at file:{meet}: two processes are rank {rank}: ", f", pid {first.pid}, and ",
                         "give each a rank of its own, and each run a file of its own"),
                        *run, "--steps", 3, "--rank", rank)
        processes[0].kill()
        self.assertEqual(self.finish(processes[1]).code, 3)
        self.assertTrue(meet.exists())
        self.refuse((f"file:{meet} within 0.5 s (it names ", "if a run that crashed left the file, start rank 0"),
                    *run, "--steps", 3, "--rank", 1, "--rendezvous-timeout", "0.5", code=3)
        metrics.unlink()
        for process in [self.begin(*run, "--steps", 3, "--rank", rank) for rank in (1, 0)]:
            self.assertEqual(self.finish(process).code, 0)
        self.assertFalse(meet.exists())


class FailureTest(ProcessTest):
    # With a slow link a step takes a third of a second, in which there is hardly a moment outside of such a command. A
    # rank that is sent a signal some time after a step began is in the midst of it.
    SLOW = ["--link", "latency=20ms"]
    INTO_THE_STEP = 0.1
    WAITS = (r"entry 'train_step', segment '[^']+' \(call \d+, slot \d+\), command \d+, \w+ on '\w+', from [^:]+: .*"
             r"rank \d waits for ranks? [\d, ]+ in \w+")

    def started(self, ranks, *arguments, envs, before=lambda rank: ()):
        """Processes by hand that train for ever, two steps of which are done."""
        metrics = self.folder / "failing.jsonl"
        metrics.unlink(missing_ok=True)
        mesh = {2: "tp=2", 4: "dp=2,tp=2"}[ranks]
        processes = [self.begin(self.plan(mesh), "--data", tools.TOKENS, "--steps", 10**6, "--metrics", metrics,
                                *arguments, env=envs(rank), before=before(rank)) for rank in range(ranks)]
        self.wait_for_step(metrics, processes[0])
        return processes

    def children_of(self, process):
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def check_survivor(self, done, cause):
        self.assertEqual(done.code, 3, done.err)
        self.assertEqual(len(done.errors()), 1, done.err)
        line = done.errors()[0]
        self.assertRegex(line, cause)
        return line


class Failures(FailureTest):
    def test_a_rank_that_is_killed_or_stopped(self):
        for sent, victim, timeout, cause in ((signal.SIGKILL, 2, 300, "died: its connection closed"),
                                             (signal.SIGKILL, 0, 300, "died: its connection closed"),
                                             (signal.SIGSTOP, 3, 2, "did not answer for "),
                                             (signal.SIGSTOP, 0, 2, "did not answer for ")):
            with self.subTest(signal=sent, rank=victim):
                port = free_port()
                processes = self.started(4, *self.SLOW, "--timeout", timeout, envs=lambda rank: torchrun(rank, 4, port))
                time.sleep(self.INTO_THE_STEP)
                processes[victim].send_signal(sent)
                named = rf"cause: rank {victim} \(host .*, pid {processes[victim].pid}\) {cause}"
                lines = [self.check_survivor(self.finish(process), named)
                         for rank, process in enumerate(processes) if rank != victim]
                self.assertEqual(len(lines), 3)
                # Of a death a rank may learn between two operations.
                if sent == signal.SIGSTOP:
                    self.assertTrue(any(re.search(self.WAITS, line) for line in lines), lines)

    def spawned(self, *arguments):
        metrics = self.folder / "spawned.jsonl"
        metrics.unlink(missing_ok=True)
        process = self.begin(self.plan("dp=2,tp=2"), "--data", tools.TOKENS, "--steps", 10**6, "--metrics", metrics,
                             "--nproc", 4, *arguments)
        self.wait_for_step(metrics, process)
        children = self.children_of(process)
        self.assertEqual(len(children), 4)
        return process, children

    def check_gone(self, children):
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while any(is_running(child) for child in children):
            self.assertLess(time.monotonic(), until, "a process is left behind")
            time.sleep(0.01)

    def test_nproc_ends_all_when_one_is_killed(self):
        process, children = self.spawned()
        os.kill(children[1], signal.SIGKILL)
        done = self.finish(process)
        self.assertEqual(done.code, 3)
        self.assertIn(f"bowline-run: error: rank 1 (pid {children[1]}) was ended by signal 9 (Killed)\n", done.err)
        named = [re.match(r"\[ranks? ([\d, ]+)\] bowline-run: error: ", line) for line in done.errors()[1:]]
        self.assertTrue(all(named), done.err)
        self.assertEqual(sorted(rank for match in named for rank in match[1].split(", ")), ["0", "2", "3"])
        self.assertEqual(done.err.count("cause: rank 1 (host"), len(named))
        self.check_gone(children)

    def test_nproc_ends_all_when_one_is_stopped(self):
        process, children = self.spawned("--timeout", 2)
        os.kill(children[2], signal.SIGSTOP)
        done = self.finish(process)
        self.assertEqual(done.code, 3)
        self.assertIn(f"note: rank 2 (pid {children[2]}) was stopped by signal 19", done.err)
        self.assertRegex(done.err, r"cause: rank 2 \(host .*\) did not answer for ")
        self.check_gone(children)

    def test_nproc_ends_all_when_one_goes_at_any_instant_of_the_start(self):
        # Whether they have met by then or not, nobody waits for the time that ranks have to meet.
        run = [self.plan("dp=2,tp=2"), "--data", tools.TOKENS, "--steps", 10**6, "--nproc", 4, "--rendezvous-timeout",
               10**6, "--timeout", 2]
        for sent in (signal.SIGKILL, signal.SIGSTOP):
            for victim, delay in ((0, 0), (3, 0), (1, 0.003), (0, 0.01), (2, 0.03), (0, 0.1)):
                with self.subTest(signal=sent, rank=victim, delay=delay):
                    process = self.begin(*run)
                    until = time.monotonic() + tools.TIMEOUT_SECONDS
                    while len(children := self.children_of(process)) < 4:
                        self.assertLess(time.monotonic(), until)
                    time.sleep(delay)
                    os.kill(children[victim], sent)
                    done = self.finish(process)
                    self.assertEqual(done.code, 3, done.err)
                    self.assertRegex(done.err, rf"rank {victim} \(pid {children[victim]}\) was (ended|stopped) by signal")
                    self.check_gone(children)

    def test_nproc_gives_the_code_of_the_cause(self):
        # Data that the vocabulary has no place for, from the second step on: 2 x 4 samples of 7 tokens.
        data = self.folder / "wide.bin"
        data.write_bytes(tools.llmc_file([1] * 40 + [60000] * 40))
        done = self.run_plan(self.plan("tp=2"), "--data", data, "--steps", 3, "--nproc", 2)
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("60000", done.err)
        self.assertEqual(len(done.errors()), 1, done.err)

    def test_nproc_passes_signals_on(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            process, children = self.spawned("--save", self.folder / str(sent))
            process.send_signal(sent)
            done = self.finish(process)
            self.assertEqual(done.code, 75, done.err)
            notes = re.findall(r"\[rank 0\] stopped by a signal after step \d+; go on with --resume", done.err)
            self.assertEqual(len(notes), 1)
            self.assertEqual(len(list((self.folder / str(sent)).glob("step-*"))), 1)
            self.check_gone(children)

    def test_a_signal_to_one_rank_stops_all(self):
        port = free_port()
        processes = self.started(2, "--save", self.folder / "one", envs=lambda rank: torchrun(rank, 2, port))
        processes[1].send_signal(signal.SIGUSR1)
        self.assertEqual([self.finish(process).code for process in processes], [75, 75])
        self.assertTrue((self.folder / "one" / "latest").exists())

    def test_a_second_signal_ends_all_at_once(self):
        process, children = self.spawned(*self.SLOW, "--save", self.folder / "unfinished")
        # So that the first signal cannot end the run: its step never ends.
        os.kill(children[1], signal.SIGSTOP)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        done = self.finish(process)
        self.assertEqual((done.code, done.errors()), (-signal.SIGINT, []))
        self.check_gone(children)

    def test_nproc_takes_its_ranks_with_it(self):
        process, children = self.spawned()
        process.kill()
        process.wait()
        self.check_gone(children)

    def test_a_stop_of_all_is_no_failure(self):
        process, children = self.spawned("--timeout", 1)
        process.send_signal(signal.SIGTSTP)
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while any(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T"
                  for pid in [process.pid, *children]):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        time.sleep(1.5)
        size = (self.folder / "spawned.jsonl").stat().st_size
        process.send_signal(signal.SIGCONT)
        while (self.folder / "spawned.jsonl").stat().st_size == size:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        done = self.finish(process)
        self.assertEqual(done.code, 75, done.err)
        self.assertNotIn("note:", done.err)


class Busy(ProcessTest):
    """Of two ranks, one whose disk takes longer than --timeout: the other waits for it, and says so."""

    def begin_slow(self, slow, rank, *arguments, seconds=1.5, until="", after=0):
        """Two ranks, one of which takes so long for each file with `slow` in its name."""
        port = free_port()
        environments = [torchrun(0, 2, port), torchrun(1, 2, port)]
        environments[rank] = tools.with_slow_files(slow, seconds, until, after, **environments[rank])
        return [self.begin(*arguments, env=env) for env in environments]

    def read_until(self, process, line):
        """Reads what a process writes to stderr, up to the line."""
        text = b""
        while line.encode() not in text:
            ready, _, _ = select.select([process.stderr], [], [], tools.TIMEOUT_SECONDS)
            part = os.read(process.stderr.fileno(), 1 << 16) if ready else b""
            self.assertNotEqual(part, b"", f"it does not say '{line.strip()}': {text.decode()}")
            text += part

    def wait_for(self, doing, slow, *arguments, rank=1, after=0):
        """Rank 1 is slow until rank 0 has said that it waits for it. Of a slow rank 0 nobody says anything."""
        name = self.folder / f"gate-{time.monotonic_ns()}"
        until = {"seconds": tools.TIMEOUT_SECONDS, "until": name, "after": after} if rank != 0 else {}
        processes = self.begin_slow(slow, rank, *arguments, "--timeout", 1, **until)
        if rank != 0:
            self.read_until(processes[0], f"note: waiting for rank {rank}, which is {doing}\n")
            name.touch()
        for end in [self.finish(process) for process in processes]:
            self.assertEqual(end.code, 0, end.err)

    def train(self, *arguments):
        return [self.plan("dp=2"), "--data", tools.TOKENS, "--save", self.folder / "s", "--save-every", 2, *arguments]

    def test_a_rank_that_saves(self):
        # Beside the steps, and then in place of them.
        self.wait_for("saving", ".step-0000", *self.train("--steps", 4))
        self.assertEqual(sorted(path.name for path in (self.folder / "s").glob("step-*")), ["step-00000002", "step-00000004"])

    def test_rank_zero_that_saves(self):
        self.wait_for("saving", ".step-0000", *self.train("--steps", 4), rank=0)
        self.assertEqual(sorted(path.name for path in (self.folder / "s").glob("step-*")), ["step-00000002", "step-00000004"])

    def test_a_rank_that_stops_while_it_saves_is_lost(self):
        ranks = self.begin_slow(".step-0000", 1, *self.train("--steps", 4), "--timeout", 2, seconds=600)
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while not list((self.folder / "s").glob(".step-*")):
            self.assertLess(time.monotonic(), until, "it saves nothing")
            time.sleep(0.01)
        ranks[1].send_signal(signal.SIGSTOP)
        end = self.finish(ranks[0])
        ranks[1].kill()
        self.finish(ranks[1])
        self.assertEqual(end.code, 3, end.err)
        self.assertIn("rank 1", end.err)
        self.assertEqual(list((self.folder / "s").glob("step-*")), [])

    def test_a_directory_that_a_rank_does_not_share(self):
        port = free_port()
        for rank in range(2):
            (self.folder / str(rank)).mkdir()
        ranks = [self.begin(self.plan("dp=2"), "--data", tools.TOKENS, "--steps", 2, "--save", "s", env=torchrun(rank, 2, port),
                            cwd=self.folder / str(rank)) for rank in range(2)]
        for end in [self.finish(rank) for rank in ranks]:
            self.assertEqual(end.code, 1, end.err)
            self.assertIn("lacks the file that rank 0 wrote there; save into a directory that all ranks share", end.err)
        self.assertEqual(list(self.folder.glob("[01]/*")), [])

    def test_steps_go_on_beside_a_save(self):
        metrics = self.folder / "m.jsonl"
        process = self.begin(self.plan("dp=2"), "--data", tools.TOKENS, "--steps", 10**7, "--save", self.folder / "s",
                             "--save-every", 1000, "--metrics", metrics, "--quiet",
                             env=tools.with_slow_files(".step-00001000", 0.4, **environment()))
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while not metrics.exists() or "save_s" not in metrics.read_text():
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), until, "it saves nothing")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).code, 75)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        save = next(line for line in lines if "save_s" in line)
        self.assertEqual(save["step"], 1000)
        # Up to the next save, which waits for this one.
        steps_before = [line["step_ms"] for line in lines[:lines.index(save)] if "loss" in line and line["step"] > 1000]
        self.assertGreater(len(steps_before), 0)
        self.assertLess(save["save_stall_s"] + 1e-3 * sum(steps_before), 1.1 * save["save_s"])

    def test_a_rank_that_loads_a_checkpoint(self):
        self.succeed(*self.train("--steps", 2))
        self.wait_for("loading a checkpoint", "parameters.rank", *self.train("--steps", 4, "--resume", self.folder / "s"))

    def test_a_rank_that_loads_weights(self):
        generates, serves = self.folder / "g.plan", self.folder / "s.plan"
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "generate", "--seq", 16, "--mesh", "tp=2",
                      *tools.ONE_THREAD, "-o", generates)
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "serve", "--max-context", 16, "--max-batch", 1,
                      "--kv-blocks", 4, "--mesh", "tp=2", *tools.ONE_THREAD, "-o", serves)
        asks = ["--prompt-tokens", "1,2,3", "--max-new-tokens", 2]
        for arguments in (self.train("--steps", 2), [self.plan("dp=2"), "--eval-data", tools.TOKENS], [generates, *asks],
                          [serves, *asks]):
            with self.subTest(arguments=arguments[1:]):
                # Ranks open the file once before they meet.
                self.wait_for("loading weights", "model.safetensors", *arguments, "--weights", tools.MODELS / MODEL, after=1)


class Restarts(FailureTest):
    def begin_saving(self, name, *arguments, steps=12, **keywords):
        return self.begin(self.plan("dp=2,tp=2"), "--data", tools.TOKENS, "--order", "shuffle", "--steps", steps,
                          "--metrics", self.folder / f"{name}.jsonl", "--save", self.folder / name, "--save-every", 2,
                          *arguments, **keywords)

    def wait_for_checkpoint(self, name, process, step):
        latest = self.folder / name / "latest"
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while not latest.exists() or int(latest.read_text().split("-")[1]) < step:
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), until, "it saves nothing")
            time.sleep(0.01)

    def test_ranks_that_die_or_stop_change_no_bit(self):
        self.assertEqual(self.finish(self.begin_saving("whole", "--nproc", 4)).code, 0)
        process = self.begin_saving("killed", "--nproc", 4, "--restarts", 1, "--timeout", 2, *self.SLOW)
        gone = []
        for step, victim, sent in ((0, 2, signal.SIGKILL), (2, 0, signal.SIGKILL), (4, 3, signal.SIGSTOP),
                                   (8, 1, signal.SIGKILL)):
            if step > 0:
                self.wait_for_checkpoint("killed", process, step)
            until = time.monotonic() + tools.TIMEOUT_SECONDS
            while len(children := self.children_of(process)) < 4 or set(children) & set(gone):
                self.assertLess(time.monotonic(), until, "it is not started again")
                time.sleep(0.01)
            gone += children
            os.kill(children[victim], sent)
        done = self.finish(process)
        self.assertEqual(done.code, 0, done.err)
        lines = re.findall(r"^bowline-run: note: (.*); restart 1 of 1, from step (\d+)$", done.err, re.MULTILINE)
        self.assertEqual(len(lines), 4, done.err)
        for (failure, step), named in zip(lines, (r"rank 2 .* was ended by signal 9 \(Killed\)( before all ranks had met)?",
                                                  r"rank 0 .* was ended by signal 9 \(Killed\)",
                                                  r"rank \d .* ended with exit code 3",
                                                  r"rank 1 .* was ended by signal 9 \(Killed\)")):
            self.assertRegex(failure, "^" + named + "$")
        self.assertEqual(lines[0][1], "0")
        self.assertTrue(all(int(line[1]) >= least for line, least in zip(lines, (0, 2, 4, 8))), lines)
        self.assertEqual(tools.metrics_of(self.folder / "whole.jsonl"), tools.metrics_of(self.folder / "killed.jsonl"))
        trees = [tree_of(self.folder / name / "step-00000012") for name in ("whole", "killed")]
        self.assertGreater(len(trees[0]), 4)
        self.assertEqual(*trees)

    def test_what_would_fail_again_is_not_restarted(self):
        steep = self.plan("tp=2", "--lr", "1e30")
        save = ["--steps", 20, "--save", self.folder / "s", "--nproc", 2, "--restarts", 3]
        done = self.run_plan(steep, "--data", tools.TOKENS, *save)
        self.assertEqual(done.code, 4, done.err)
        self.assertIn("bowline-run: note: without --save-every nothing is saved before the last step", done.err)
        self.assertRegex(done.err, r"bowline-run: error: (rank \d gave up: )?step \d+: the loss is ")
        self.assertIn("bowline-run: note: not restarted: ", done.err)
        done = self.run_plan(self.plan("tp=2"), "--data", self.folder / "no-such.bin", *save)
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("bowline-run: note: not restarted: ", done.err)

    def test_it_gives_up(self):
        # The file of metrics may not become long enough; no checkpoint is due before.
        done = self.begin(self.plan("tp=2"), "--data", tools.TOKENS, "--steps", 10**6, "--save", self.folder / "s",
                          "--metrics", self.folder / "m.jsonl", "--nproc", 2, "--restarts", 2, "--quiet",
                          before=["prlimit", "--fsize=2000"])
        done = self.finish(done)
        self.assertEqual(done.code, 3, done.err)
        self.assertEqual(done.err.count("restart 1 of 2, from step 0"), 1, done.err)
        self.assertEqual(done.err.count("restart 2 of 2, from step 0"), 1, done.err)
        self.assertIn("; given up after 3 failures in a row without progress\n", done.err)

    def test_a_signal_ends_it_for_good(self):
        process = self.begin_saving("stopped", "--nproc", 4, "--restarts", 3, steps=10**6)
        self.wait_for_checkpoint("stopped", process, 2)
        process.send_signal(signal.SIGTERM)
        done = self.finish(process)
        self.assertEqual(done.code, 75, done.err)
        self.assertNotIn("restart", done.err)

    def test_it_restarts_what_it_started_alone(self):
        save = ["--data", tools.TOKENS, "--steps", 3, "--restarts", 2, "--save", self.folder / "s"]
        done = self.run_plan(self.plan("tp=2"), *save, env=torchrun(1, 2, free_port()))
        self.assertEqual(done.code, 1)
        self.assertIn("RANK says that this process is rank 1 of 2; leave out --restarts, and let the launcher", done.err)
        done = self.run_plan(self.plan("tp=2"), *save[:-2], "--nproc", 2)
        self.assertEqual(done.code, 1)
        self.assertIn("--restarts goes on with the checkpoints of --save DIR", done.err)


class TwoHosts(FailureTest):
    """Network namespaces with a link between them, 10.77.1.1 and 10.77.1.2."""

    def hosts(self):
        names = [f"bowline-{os.getpid()}-{host}" for host in (0, 1)]

        def ip(*arguments, must=True):
            done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
            if must:
                self.assertEqual(done.returncode, 0, done.stderr)
            return done

        for name in names:
            made = ip("netns", "add", name, must=False)
            if made.returncode != 0:
                print(f"skipped: this user may make no network namespace: {made.stderr.strip()}", file=sys.stderr)
                self.skipTest("no network namespaces")
            self.addCleanup(ip, "netns", "del", name, must=False)
        ip("-n", names[0], "link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns", names[1])
        for host, name in enumerate(names):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", f"10.77.1.{host + 1}/24", "dev", "link0")
            ip("-n", name, "link", "set", "link0", "up")
        return names, lambda: ip("-n", names[0], "link", "set", "link0", "down")

    def test_rank_zero_that_is_told_localhost(self):
        names, _ = self.hosts()
        run = [self.plan("tp=2"), "--data", tools.TOKENS, "--steps", 3]
        for address in ("localhost", "127.0.0.1"):
            metrics = self.folder / f"{address}.jsonl"
            processes = [self.begin(*run, "--metrics", metrics, env=torchrun(rank, 2, 29500, host),
                                    before=["ip", "netns", "exec", names[rank]])
                         for rank, host in enumerate((address, "10.77.1.1"))]
            for process in processes:
                done = self.finish(process)
                self.assertEqual(done.code, 0, done.err)
            self.assertEqual(tools.metrics_of(metrics), self.train(self.plan("tp=2")))

    def test_ranks_that_are_cut_off(self):
        names, cut = self.hosts()
        processes = self.started(4, "--timeout", 2, envs=lambda rank: torchrun(rank, 4, 29500, "10.77.1.1"),
                                 before=lambda rank: ["ip", "netns", "exec", names[rank // 2]])
        cut()
        for rank, process in enumerate(processes):
            cause = r"cause: rank 2 \(.*\), rank 3 \(.*\)" if rank < 2 else r"cause: rank 0 \(.*\)"
            cause += r" did not answer for .* network to it is cut"
            line = self.check_survivor(self.finish(process), cause)
            self.assertRegex(line, "waits for rank")


if __name__ == "__main__":
    tools.main()
