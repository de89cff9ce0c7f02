#!/usr/bin/env python3
"""Files of tokens as people have them: several, blends, every format, the tail of an evaluation, and the scan of ids."""

import itertools
import os
import pathlib
import re
import shutil
import struct
import tempfile

import tools

MODEL = "llama-tiny"
VOCABULARY = 257
SEQ = 7
SAMPLES = 11

# How a batch may be divided. With pp, the batch has two microbatches.
MESHES = {"": 1, "dp=2": 2, "tp=2": 2, "pp=2": 2, "dp=2,tp=2": 4}


def npy_file(tokens, descr, code):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(tokens)},), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + raw(tokens, code)


def raw(tokens, code):
    return struct.pack(f"<{len(tokens)}{code}", *tokens)


def wide_llmc_file(tokens, version):
    return struct.pack("<256i", 20240801, version, len(tokens), *[0] * 253) + raw(tokens, "I")


def megatron_index(count, code):
    """Of one document, which is one sequence."""
    return b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, 1, 2) + struct.pack("<iqqq", count, 0, 0, 1)


class DataTest(tools.ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.plan_folder = pathlib.Path(tempfile.mkdtemp(prefix="bowline-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.plan_folder, ignore_errors=True)

    def plan(self, batch, mesh="", *flags):
        path = self.plan_folder / ("-".join(map(str, (batch, mesh, *flags))) + ".plan")
        if not path.exists():
            tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "train", "--batch", batch, "--seq", SEQ,
                          "--lr", "0.01", *tools.ONE_THREAD, *(["--mesh", mesh] if mesh else []),
                          *(["--microbatches", 2] if "pp" in mesh else []), *flags, "-o", path)
        return path

    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def run_lines(self, *arguments, **keywords):
        """The metrics of a run that ends well."""
        metrics = self.folder / "m.jsonl"
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", *arguments, "--metrics", metrics, "--quiet", **keywords)
        return tools.metrics_of(metrics)

    def refuse(self, says, *arguments, **keywords):
        done = tools.start("bowline-run", *arguments, **keywords)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 1, message)
        self.assertRegex(message, says)
        self.assertNotIn("step 1", message)


class Tail(DataTest):
    def trained(self):
        """Weights for which one sample is far from another: of those in a cycle they are sure, of others surprised."""
        data = self.write("cycle.bin", tools.llmc_file([10, 20, 30, 40, 50] * 200))
        self.run_lines(self.plan(4), "--data", data, "--steps", 30, "--save", self.folder / "s")
        return self.folder / "s"

    def test_a_loss_does_not_depend_on_batch_and_mesh(self):
        weights = self.trained()
        tokens = ([10, 20, 30, 40, 50] * 9)[:5 * SEQ] + tools.random_tokens(6 * SEQ + 4, VOCABULARY)
        one = self.plan(1)

        def loss(plan, *files):
            flags = [word for file in files for word in ("--eval-data", file)]
            lines = self.run_lines(plan, *flags, "--weights", weights)
            self.assertEqual(len(lines), 1)
            return float(lines[0]["eval_loss"])

        # Each sample by itself, which has no tail.
        samples = [tokens[i * SEQ:(i + 1) * SEQ + 1] for i in range(SAMPLES)]
        files = [self.write(f"{i}.bin", tools.llmc_file(sample)) for i, sample in enumerate(samples)]
        losses = [loss(one, file) for file in files]
        expected = sum(losses) / SAMPLES
        # Sums of f32 with up to this many terms, one product of the model after the other, and the batch. A sample that
        # counts twice or not at all changes the mean by far more.
        terms = 1024
        tolerance = max(losses) * terms * 2**-24
        lost = [abs((expected * SAMPLES - sample) / (SAMPLES - 1) - expected) for sample in losses]
        self.assertGreater(min(lost), 20 * tolerance)

        data = self.write("all.bin", tools.llmc_file(tokens))
        for mesh, ranks in MESHES.items():
            for batch in (1, 2, 3, 4, 6, 8, 14, 16) if not mesh else (4, 6, 8, 16):
                plan = self.plan(batch, mesh)
                with self.subTest(mesh=mesh, batch=batch):
                    self.assertAlmostEqual(loss(plan, data), expected, delta=tolerance)
                    # The same samples, of which each has a file of its own.
                    self.assertAlmostEqual(loss(plan, *files), expected, delta=tolerance)
        # Two runs at a time, whose results must not be mixed up.
        for mesh in ("", "dp=2"):
            plan = self.plan(8, mesh, "--runs-in-flight", 2)
            self.assertAlmostEqual(loss(plan, data), expected, delta=tolerance)
        out = tools.succeed("bowline-run", self.plan(4, "dp=2"), "--eval-data", data, "--weights", weights, "--nproc", 2)
        self.assertRegex(out.decode(), rf"^evaluation loss [0-9.]+ over {SAMPLES * SEQ} tokens\n$")

    def test_evaluation_while_training_and_of_a_part(self):
        tokens = tools.random_tokens(SAMPLES * SEQ + 1, VOCABULARY)
        data = self.write("all.bin", tools.llmc_file(tokens))
        run = [self.plan(4), "--data", tools.TOKENS, "--steps", 2, "--eval-every", 1]
        plain = [line for line in self.run_lines(*run[:-2]) if "loss" in line]
        whole, all_batches = (self.run_lines(*run, "--eval-data", data, *flags) for flags in ([], ["--eval-batches", 3]))
        self.assertEqual(whole, all_batches)
        # Evaluating changes nothing.
        self.assertEqual([line for line in whole if "loss" in line], plain)
        part = self.write("part.bin", tools.llmc_file(tokens[:8 * SEQ + 1]))
        self.assertEqual(self.run_lines(*run, "--eval-data", data, "--eval-batches", 2),
                         self.run_lines(*run, "--eval-data", part))
        self.refuse("has 11 samples of 7 tokens; evaluating 4 batch", *run, "--eval-data", data, "--eval-batches", 4)


class Formats(DataTest):
    def test_every_format_trains_alike(self):
        tokens = tools.random_tokens(300, 256)
        data = {"": self.write("x.bin", tools.llmc_file(tokens)),
                "wide": self.write("wide.bin", wide_llmc_file(tokens, 1)),
                "wide7": self.write("wide7.bin", wide_llmc_file(tokens, 7)),
                "u16": f"u16:{self.write('x.u16', raw(tokens, 'H'))}",
                "u32": f"u32:{self.write('x.u32', raw(tokens, 'I'))}",
                "idx": self.write("m.idx", megatron_index(300, 8))}
        self.write("m.bin", raw(tokens, "H"))
        for descr, code in (("|u1", "B"), ("<u2", "H"), ("<u4", "I"), ("<i4", "i"), ("<i8", "q"), ("<u8", "Q")):
            data[descr] = self.write(f"{code}.npy", npy_file(tokens, descr, code))
        expected = None
        for name, path in data.items():
            with self.subTest(format=name):
                lines = self.run_lines(self.plan(2), "--data", path, "--eval-data", path, "--steps", 3)
                expected = expected or lines
                self.assertEqual(lines, expected)
                info = tools.succeed("bowline-data", "info", path).decode()
                self.assertIn("tokens         300\n", info)

    def test_what_is_not_raw_is_refused(self):
        plan = self.plan(2)
        tokens = tools.random_tokens(300, 256)
        for name, content, says in (("llmc", tools.llmc_file(tokens), "leave out 'u16:'"),
                                    ("npy", npy_file(tokens, "<u2", "H"), "leave out 'u16:'"),
                                    ("text", b"in the beginning " * 20, "is text"),
                                    ("odd", raw(tokens, "H") + b"x", "no multiple of 2")):
            self.refuse(f"/{name}'.*{says}", plan, "--data", f"u16:{self.write(name, content)}", "--steps", 1)
        # 32 bits read as 16 are zeros at every second place; as 32 bits, 16 are ids that no vocabulary has.
        self.refuse("token 0 has the id", plan, "--data", f"u32:{self.write('x.u16', raw(tokens, 'H'))}", "--steps", 1)
        self.refuse("give it as u16:", plan, "--data", self.write("bare", raw(tokens, "H")), "--steps", 1)
        # A message only advises steps that can be followed.
        for name, content in (("prose", b"in the beginning " * 20), ("uneven", raw(tokens, "H") + b"x"),
                              ("arrow", b"ARROW1\0\0" + bytes(800))):
            self.refuse("is no token file.*bowline-data tokenize\n", plan, "--data", self.write(name, content), "--steps", 1)
        for index in (b"", b"x" * 200):
            self.write("m.idx", index)
            self.refuse("m.idx' beside it does not begin with Megatron's index magic", plan, "--data",
                        self.write("m.bin", raw(tokens, "H")), "--steps", 1)


class Blends(DataTest):
    def test_ranks_read_what_one_rank_reads(self):
        files = [self.write(f"{i}.bin", tools.llmc_file(tools.random_tokens(60 + 90 * i, VOCABULARY, i + 1)))
                 for i in range(3)]
        blend = [word for share, file in zip((5, 2, 3), files) for word in ("--data", f"{share}:{file}")]
        for data in (blend, [word for file in files for word in ("--data", file)]):
            for order in ("sequential", "shuffle"):
                flags = [*data, "--steps", 12, "--order", order]
                one = self.run_lines(self.plan(4), *flags)
                self.assertEqual(one, self.run_lines(self.plan(4), *flags))
                for mesh in ("dp=2", "pp=2"):
                    for how in ([], ["--nproc", 2]):
                        several = self.run_lines(self.plan(4, mesh), *flags, *how)
                        for a, b in zip(one, several, strict=True):
                            self.assertAlmostEqual(float(a["loss"]), float(b["loss"]), delta=2e-4)

    def test_a_blend_resumes_at_the_next_sample(self):
        files = [self.write(f"{i}.bin", tools.llmc_file(tools.random_tokens(60 + 90 * i, VOCABULARY, i + 1)))
                 for i in range(2)]
        run = [self.plan(4, "dp=2"), "--data", f"0.3:{files[0]}", "--data", f"0.7:{files[1]}", "--order", "shuffle"]
        straight = self.run_lines(*run, "--steps", 10)
        for cut in (1, 4, 7):
            save = self.folder / f"s{cut}"
            begin = self.run_lines(*run, "--steps", cut, "--save", save)
            rest = self.run_lines(*run, "--steps", 10, "--resume", save, "--nproc", 2)
            self.assertEqual(begin + rest, straight)


class Scans(DataTest):
    def test_an_id_outside_is_named_before_step_1_on_several_ranks(self):
        tokens = tools.random_tokens(1003, VOCABULARY)
        good = self.write("good.bin", tools.llmc_file(tokens))
        bad = self.write("bad.bin", tools.llmc_file(tokens[:-1] + [257]))
        says = rf"'{re.escape(str(bad))}': token 1002 has the id 257, outside of the vocabulary \[0, 257\)"
        for (mesh, ranks), processes in itertools.product(MESHES.items(), (False, True)):
            if processes and ranks == 1:
                continue
            how = ["--nproc", ranks] if processes else []
            run = [self.plan(4, mesh), "--steps", 1, "--save", self.folder / "s", *how]
            with self.subTest(mesh=mesh, processes=processes):
                self.refuse(says, *run, "--data", bad)
                self.refuse(says, *run, "--data", good, "--eval-data", bad)
                self.refuse(says, self.plan(4, mesh), "--eval-data", bad, "--weights", tools.MODELS / MODEL, *how)
        self.assertFalse((self.folder / "s").exists())

    def test_a_restart_scans_nothing_and_a_changed_file_is_scanned(self):
        tokens = tools.random_tokens(1003, VOCABULARY)
        data = self.write("x.bin", tools.llmc_file(tokens))
        scans = self.folder / "cache" / "scans"
        environment = {**os.environ, "BOWLINE_CACHE_DIR": str(self.folder / "cache")}
        run = [self.plan(4, "dp=2"), "--data", data, "--steps", 1, "--nproc", 2]

        def kept():
            return {path.name: (path.stat().st_ino, path.read_text()) for path in scans.iterdir()}

        self.run_lines(*run, env=environment)
        first = kept()
        self.assertEqual(len(first), 1)
        # A scan writes its result anew, into another file of the same name.
        self.run_lines(*run, env=environment)
        self.assertEqual(kept(), first)
        # The recorded result of the scan decides: nobody looks at the data file.
        (path,) = scans.iterdir()
        text = path.read_text()
        self.assertTrue(text.endswith("below 257\n"), text)
        path.write_text(text.replace("below 257", "below 258"))
        self.run_lines(*run, env=environment)
        self.assertEqual(path.read_text(), text)
        data.write_bytes(tools.llmc_file(tokens[:-1] + [257]))
        self.refuse("token 1002 has the id 257", *run, env=environment)
        self.assertEqual(len(kept()), 1)
        data.write_bytes(tools.llmc_file(tokens + [3]))
        self.run_lines(*run, env=environment)
        self.assertEqual(len(kept()), 2)


if __name__ == "__main__":
    tools.main()
