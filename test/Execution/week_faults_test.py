#!/usr/bin/env python3
"""Faults that a week of training meets seldom: a checkpoint that cannot be deleted, numbers that are not finite where the loss is,
signals at bad moments, an index of weights that lists too much."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import time

import tools
import wrong_data_test
from week_runs import MODEL, VOCABULARY, WeekTest, safetensors

# How a run has two ranks: flags of the compiler, and of the run.
RANKS = ((), ()), (("--mesh", "dp=2"), ()), (("--mesh", "dp=2"), ("--nproc", 2))


def floats(data, begin, tensor):
    """Of a file in memory, where the numbers of an f32 tensor begin, and how many there are."""
    first, end = tensor["data_offsets"]
    assert tensor["dtype"] == "F32"
    return begin + first, (end - first) // 4


class FaultTest(WeekTest):
    def begin(self, plan, *flags, **keywords):
        """A run that goes on while the test looks at it; it is killed where the test fails first."""
        command = [tools.tool("bowline-run"), plan, *tools.on_test_driver(flags)]
        keywords.setdefault("stderr", subprocess.PIPE)
        run = subprocess.Popen([*map(str, command)], env={**os.environ, "BOWLINE_CACHE_DIR": "off"}, **keywords)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        return run

    def finish(self, run, code):
        text = run.communicate(timeout=tools.TIMEOUT_SECONDS)[1].decode()
        self.assertEqual(run.returncode, code, text)
        return text

    def wait_until(self, is_true, run):
        until = time.monotonic() + tools.TIMEOUT_SECONDS
        while not is_true():
            self.assertIsNone(run.poll(), "the run ended early")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def scale(self, factors):
        """Multiplies parameters of the latest checkpoint."""
        path = self.save / self.latest() / "model.safetensors"
        header, begin = safetensors(path)
        data = bytearray(path.read_bytes())
        for key, factor in factors.items():
            at, count = floats(data, begin, header[key])
            struct.pack_into(f"<{count}f", data, at, *(factor * x for x in struct.unpack_from(f"<{count}f", data, at)))
        path.write_bytes(data)


class Scan(FaultTest):
    def stopped_in_the_middle(self, size, terminal, *flags):
        """The stderr of a run that stood still for more than half a second in the middle of its scan of `size` bytes; None where
        the scan ended before the test could stop it. A scan that takes half a second by itself says the same as one that
        stood still."""
        data = self.folder / "zeros"
        with open(data, "wb") as file:
            file.truncate(size)
        ours, theirs = pty.openpty() if terminal else os.pipe()
        run = self.begin(*flags, "--data", f"u16:{data}", "--steps", 1, stderr=theirs)
        os.close(theirs)
        touched = 0
        while touched < 24 << 20 and run.poll() is None:  # three blocks: the first one has been reported
            try:
                maps = pathlib.Path(f"/proc/{run.pid}/smaps").read_text()
            except (FileNotFoundError, ProcessLookupError):
                break
            touched = 1024 * sum(int(kb) for kb in re.findall(rf" {re.escape(str(data))}\n(?:.*\n)*?Rss: +(\d+) kB", maps))
        os.kill(run.pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(run.pid, signal.SIGCONT)
        text = b""
        while True:
            self.assertTrue(select.select([ours], [], [], tools.TIMEOUT_SECONDS)[0], text)
            try:
                part = os.read(ours, 4096)
            except OSError:  # nobody has the terminal any more
                break
            if not part:
                break
            text += part
        os.close(ours)
        self.assertEqual(run.wait(), 0, text)
        return text.decode() if touched < size - (24 << 20) else None

    def of_a_long_scan(self, *how):
        """Of a file that is so large that the test can stop the scan."""
        for doublings in range(6):
            text = self.stopped_in_the_middle(128 << 20 << doublings, *how)
            if text is not None:
                return text
        self.fail("no scan took long enough to be stopped")

    def test_it_says_on_a_terminal_how_far_it_is(self):
        # Ranks of --nproc have no terminal.
        for flags in ((), ("--mesh", "dp=2")):
            text = self.of_a_long_scan(True, self.plan(*flags))
            percent = [int(number) for number in re.findall(r"\r\x1b\[Kchecking ids: (\d+)%", text)]
            self.assertGreater(len(percent), 0, text)
            self.assertEqual(percent, sorted(percent))
            self.assertLessEqual(percent[-1], 100)
            # Its line is gone before the run says anything else.
            self.assertRegex(text.split("checking ids: ")[-1], r"^\d+%\r\x1b\[K\S")

    def test_no_file_and_no_quiet_run_gets_it(self):
        self.assertNotIn("checking", self.of_a_long_scan(False, self.plan()))
        self.assertNotIn("checking", self.of_a_long_scan(True, self.plan(), "--quiet"))


class Keep(FaultTest):
    def checkpoints(self):
        return sorted(path.name for path in self.save.glob("step-*"))

    def test_files_that_nobody_may_delete_are_a_note(self):
        probe = self.folder / "probe"
        probe.write_text("")
        if subprocess.run(["chattr", "+i", probe], capture_output=True).returncode != 0:
            self.skipTest("chattr +i: not on this file system, or not by this user")
        subprocess.run(["chattr", "-i", probe], check=True)
        # Files in a checkpoint: its directory is renamed, and not emptied. The directory itself: it keeps its name.
        for flags, how in RANKS:
            for name, says in (("trainer_state.json", "cannot delete all of the old checkpoint '{}/step-00000002'; delete the "
                                                      "rest of it, '{}/"),
                               ("", "cannot delete the old checkpoint '{}/step-00000002'")):
                with self.subTest(flags=flags, how=how, name=name):
                    shutil.rmtree(self.save, ignore_errors=True)
                    self.run_plan(self.plan(*flags), *how, steps=2)
                    subprocess.run(["chattr", "+i", self.save / "step-00000002" / name], check=True)
                    try:
                        text = self.run_plan(self.plan(*flags), "--resume", self.save, "--save-every", 2, "--keep", 1, *how,
                                             says="note: " + says.format(*[self.save] * 2))
                    finally:
                        subprocess.run(["chattr", "-R", "-i", self.save], check=True)
                    self.assertEqual(self.steps_of(), [1, 2, 3, 4, 5, 6])
                    self.assertEqual(self.latest(), "step-00000006")
                    self.assertEqual(self.checkpoints(), ["step-00000006"] if name else ["step-00000002", "step-00000006"])
                    # The next run that saves deletes the old checkpoint, or the rest of it.
                    self.assertNotIn("cannot delete", self.run_plan(self.plan(*flags), "--resume", self.save, "--keep", 1, *how,
                                                                    steps=7))
                    self.assertEqual(sorted(path.name for path in self.save.iterdir()), [".lock", "latest", "step-00000007"])

    def test_a_checkpoint_on_a_disk_of_its_own_is_a_note(self):
        for flags, how in RANKS:
            with self.subTest(flags=flags, how=how):
                shutil.rmtree(self.save, ignore_errors=True)
                self.run_plan(self.plan(*flags), *how, steps=2)
                old = self.save / "step-00000002"
                # A directory onto which something is mounted can neither be renamed nor deleted.
                if subprocess.run(["mount", "--bind", old, old], capture_output=True).returncode != 0:
                    self.skipTest("this user may mount nothing")
                try:
                    text = self.run_plan(self.plan(*flags), "--resume", self.save, "--save-every", 2, "--keep", 1, *how,
                                         says=f"note: cannot delete the old checkpoint '{old}'")
                finally:
                    subprocess.run(["umount", old], check=True)
                self.assertEqual(self.steps_of(), [1, 2, 3, 4, 5, 6], text)
                self.assertEqual(self.checkpoints(), ["step-00000002", "step-00000006"])


class NonFinite(FaultTest):
    def test_a_gradient_that_is_not_finite_under_a_finite_loss_ends_the_run(self):
        for flags, how in RANKS:
            with self.subTest(flags=flags, how=how):
                shutil.rmtree(self.save, ignore_errors=True)
                self.run_plan(self.plan(), steps=2)
                plan = self.plan(*flags, *(["--batch", 2] if flags else []))
                # Logits, and with them the loss, stay as they were. The gradient of the head has about 1e30 in each element, so
                # that no f32 holds the sum of their squares.
                self.scale({"model.norm.weight": 1e30, "lm_head.weight": 1e-30})
                before = {path: path.read_bytes() for path in self.save.rglob("*") if path.is_file() and path.name != ".lock"}
                text = self.run_plan(plan, "--resume", self.save, "--save-every", 1, *how, code=4)
                self.assertRegex(text, r"step 3: the loss is [0-9.]+ and the norm of the gradient inf, ")
                self.assertEqual({path: path.read_bytes() for path in self.save.rglob("*")
                                  if path.is_file() and path.name != ".lock"}, before)
                self.assertEqual(self.steps_of(), [1, 2, 3])
                self.run_plan(plan, "--resume", self.save, "--allow-non-finite", *how, steps=3, says="step 3: saved")

    def poke(self, run, before, after):
        """Writes into the memory of a run, wherever it holds `before` and no file does. How often that was."""
        places = 0
        with open(f"/proc/{run.pid}/mem", "r+b", buffering=0) as memory:
            for line in pathlib.Path(f"/proc/{run.pid}/maps").read_text().splitlines():
                bounds, access, _, _, inode, *name = line.split(maxsplit=5)
                if not access.startswith("rw") or (inode != "0" and str(self.folder) in "".join(name)) or name == ["[vvar]"]:
                    continue
                begin, end = (int(bound, 16) for bound in bounds.split("-"))
                try:
                    memory.seek(begin)
                    data = memory.read(end - begin)
                except OSError:
                    continue
                for found in re.finditer(re.escape(before), data):
                    memory.seek(begin + found.start())
                    memory.write(after)
                    places += 1
        return places

    def test_a_moment_that_is_not_finite_is_not_saved_though_parameters_are(self):
        key = "layers.1.attn.wq.v"
        for flags in ((), ("--mesh", "dp=2")):
            with self.subTest(flags=flags):
                shutil.rmtree(self.save, ignore_errors=True)
                self.run_plan(self.plan(), steps=2)
                file = self.save / self.latest() / "optimizer.safetensors"
                header, begin = safetensors(file)
                at, _ = floats(b"", begin, header[key])
                row = file.read_bytes()[at:at + 4 * header[key]["shape"][1]]
                # No step makes such a value without a gradient that is not finite either. So a fault of memory has to: while
                # the run, which has loaded its states, waits for a reader of its metrics.
                pipe = self.folder / f"pipe{len(flags)}"
                os.mkfifo(pipe)
                plan = self.plan(*flags, *(["--batch", 2] if flags else []))
                run = self.begin(plan, "--data", self.data, "--steps", 4, "--save", self.save, "--resume", self.save,
                                 "--metrics", pipe, "--quiet")
                self.assertIn(b"waiting for a program that reads the pipe", run.stderr.readline())
                # An update is divided by the root of this moment, so that the parameter stays as it is.
                element = row[:8] + struct.pack("<f", float("inf")) + row[12:]
                self.assertGreaterEqual(self.poke(run, row, element), 1)
                lines = [json.loads(line) for line in pipe.read_text().splitlines()]
                text = self.finish(run, code=4)
                self.assertEqual([line["step"] for line in lines], [3, 4], text)
                self.assertRegex(text, rf"checkpoint of step 4 was not saved: (rank \d: )?the optimizer's state "
                                       rf"'{re.escape(key)}' is not finite from element \[0, 2\] on; it became so after step 2")
                self.assertEqual(self.latest(), "step-00000002")
                self.assertEqual([path.name for path in self.save.glob("*step-*")], ["step-00000002"])


class Computing(FaultTest):
    def test_a_step_that_fails_while_it_computes_keeps_the_checkpoint_before_it(self):
        program, plan = self.folder / "x.mlir", self.folder / "x.plan"
        program.write_text(wrong_data_test.TWICE)
        # In the third step, twice the last token of the first sample is no row of the table.
        tokens = tools.random_tokens(500, wrong_data_test.VOCABULARY // 2)
        tokens[2 * wrong_data_test.BATCH * wrong_data_test.SEQ + 3] = 20
        self.data = self.tokens("d.bin", tokens)
        for flags in ((), ("--mesh", "dp=2")):
            with self.subTest(flags=flags):
                shutil.rmtree(self.save, ignore_errors=True)
                tools.succeed("bowline-compile", program, "--mode", "train", *tools.ONE_THREAD, *flags, "-o", plan)
                # With and without a save that another thread is still writing when the step fails.
                for every, last in ((2, 2), (1, 2)):
                    shutil.rmtree(self.save, ignore_errors=True)
                    self.run_plan(plan, "--save-every", every, code=1, says="no row of the table")
                    self.assertEqual((self.latest(), self.steps_of()), (f"step-{last:08d}", [1, 2]))
                self.run_plan(plan, "--resume", self.save, code=1, says="no row of the table")
                self.assertEqual(self.latest(), "step-00000002")


class Signals(FaultTest):
    SENT = signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP

    def test_signals_during_an_evaluation_of_ranks_save_the_last_step(self):
        # Zeros take no room, and so many of them evaluate for minutes.
        rows = self.folder / "zeros"
        with open(rows, "wb") as file:
            file.truncate(60 << 20)
        plan = self.plan("--mesh", "dp=2")
        for sent in self.SENT:
            with self.subTest(sent=sent.name):
                shutil.rmtree(self.save, ignore_errors=True)
                self.metrics.unlink(missing_ok=True)
                run = self.begin(plan, "--data", self.data, "--steps", 9, "--save", self.save, "--metrics", self.metrics,
                                 "--eval-data", f"u16:{rows}", "--eval-every", 2, "--nproc", 2)
                # After this line comes the evaluation, before anything is saved.
                self.wait_until(lambda: self.metrics.exists() and '"step":2,' in self.metrics.read_text(), run)
                self.assertFalse((self.save / "latest").exists())
                time.sleep(0.2)
                run.send_signal(sent)
                text = self.finish(run, code=75)
                self.assertEqual((self.steps_of(), self.steps_of("eval_loss"), self.latest()), ([1, 2], [], "step-00000002"), text)
                # It is made up for when the run goes on.
                text = self.run_plan(plan, "--resume", self.save, "--eval-data", self.data, "--eval-every", 2, "--nproc", 2,
                                     steps=3, says="step 2: evaluation loss")
                self.assertEqual((self.steps_of(), self.steps_of("eval_loss")), ([1, 2, 3], [2]), text)

    def test_signals_while_ranks_start_lose_nothing(self):
        plan = self.plan("--mesh", "dp=2")
        self.run_plan(plan, steps=2)
        last = 2
        for sent in self.SENT:
            for seconds in (0, 0.02, 0.1):  # of the start, whatever happens then
                with self.subTest(sent=sent.name, seconds=seconds):
                    run = self.begin(plan, "--data", self.data, "--steps", 10**7, "--save", self.save, "--resume", self.save,
                                     "--nproc", 2)
                    children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
                    self.wait_until(children.read_text, run)
                    time.sleep(seconds)
                    run.send_signal(sent)
                    text = self.finish(run, code=75)
                    # As many steps as it says, or none.
                    before, last = last, self.state()["step"]
                    said = re.findall(r"stopped by a signal after step (\d+); go on with --resume", text)
                    self.assertEqual(last, int(said[0]) if said else before, text)
        self.run_plan(plan, "--resume", self.save, steps=self.state()["step"] + 1, metrics=self.folder / "new.jsonl")


class Directory(FaultTest):
    """Of somebody who changes files while the run goes on."""

    def stopped_between_saves(self, *flags):
        """A run that stands still, has saved, and is saving nothing."""
        self.metrics.unlink(missing_ok=True)
        run = self.begin(self.plan(), "--data", self.data, "--steps", 10**7, "--save", self.save, "--save-every", 500,
                         "--metrics", self.metrics, *flags)
        self.wait_until((self.save / "latest").exists, run)
        while True:
            run.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WNOWAIT)
            saving = list(self.save.glob(".step-*")) or (self.save / self.latest()) != max(self.save.glob("step-*"))
            if not saving:
                return run
            run.send_signal(signal.SIGCONT)
            time.sleep(0.01)

    def test_a_directory_that_is_moved_is_made_again(self):
        run = self.stopped_between_saves()
        before = self.latest()
        self.save.rename(self.folder / "moved")
        run.send_signal(signal.SIGCONT)
        self.wait_until((self.save / "latest").exists, run)
        run.send_signal(signal.SIGTERM)
        text = self.finish(run, code=75)
        self.assertIn(f"note: somebody deleted or moved '{self.save}' while this run saves into it; it was made again", text)
        self.assertTrue((self.folder / "moved" / before / "trainer_state.json").exists())
        self.assertEqual(self.state()["step"], max(self.steps_of()))
        self.run_plan(self.plan(), "--resume", self.save, steps=self.state()["step"] + 1)

    def test_a_lock_that_is_deleted_is_taken_again(self):
        run = self.stopped_between_saves()
        before = self.latest()
        (self.save / ".lock").unlink()
        run.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.latest() != before, run)
        run.send_signal(signal.SIGTERM)
        self.assertIn(f"note: somebody deleted the lock of '{self.save}' while this run saves into it", self.finish(run, code=75))

    def test_a_directory_that_another_run_has_by_then_is_left_to_it(self):
        run = self.stopped_between_saves()
        self.save.rename(self.folder / "moved")
        other = self.begin(self.plan(), "--data", self.data, "--steps", 10**7, "--save", self.save, "--quiet")
        self.wait_until(lambda: (self.save / ".lock").exists() and (self.save / ".lock").read_text(), other)
        run.send_signal(signal.SIGCONT)
        self.assertIn(f"another run is saving into '{self.save}': process {other.pid} ", self.finish(run, code=1))
        other.send_signal(signal.SIGTERM)
        self.finish(other, code=75)
        self.assertEqual([path.name for path in self.save.glob("step-*")], [self.latest()])

    def test_a_checkpoint_that_does_not_become_the_latest_is_complete(self):
        run = self.stopped_between_saves()
        before = self.latest()
        # No file takes the place of a directory.
        (self.save / "latest").unlink()
        (self.save / "latest").mkdir()
        run.send_signal(signal.SIGCONT)
        text = self.finish(run, code=1)
        named = re.search(rf"the checkpoint '({re.escape(str(self.save))}/step-\d+)' is complete, and --resume \1 goes on with it",
                          text)
        self.assertTrue(named, text)
        self.assertGreater(pathlib.Path(named[1]).name, before)
        (self.save / "latest").rmdir()
        step = json.loads((pathlib.Path(named[1]) / "trainer_state.json").read_text())["step"]
        self.run_plan(self.plan(), "--resume", named[1], steps=step + 1)
        self.assertEqual(self.state()["step"], step + 1)

    def test_a_save_that_would_replace_a_checkpoint_of_another_run_is_named_before_step_1(self):
        self.run_plan(self.plan(), steps=4)
        other, self.save = self.save / "step-00000004", self.folder / "own"
        self.run_plan(self.plan(), steps=2)
        for put in (lambda path: shutil.copytree(other, path), lambda path: path.write_text("notes")):
            place = self.save / "step-00000004"
            put(place)
            text = self.run_plan(self.plan(), "--resume", self.save / "step-00000002", steps=4, code=1,
                                 says=f"'{place}' is no checkpoint of this run, or cannot be read; a save of this step would "
                                      "replace it")
            self.assertNotIn("step 3/", text)
            self.assertTrue(place.exists())
            shutil.rmtree(place) if place.is_dir() else place.unlink()

    def test_evaluation_data_that_somebody_makes_shorter_end_the_run_with_its_last_step_saved(self):
        for flags, how in RANKS:
            with self.subTest(flags=flags, how=how):
                shutil.rmtree(self.save, ignore_errors=True)
                self.metrics.unlink(missing_ok=True)
                rows = self.tokens("e.bin", tools.random_tokens(403, 256))
                run = self.begin(self.plan(*flags), "--data", self.data, "--steps", 10**7, "--save", self.save, "--metrics",
                                 self.metrics, "--eval-data", rows, "--eval-every", 1, "--quiet", *how)
                self.wait_until(lambda: self.metrics.exists() and '"eval_loss"' in self.metrics.read_text(), run)
                os.truncate(rows, 0)
                text = self.finish(run, code=3)
                self.assertIn("e.bin' cannot be read any more: it was made shorter", text)
                self.assertEqual(self.state()["step"], max(self.steps_of()))

    def test_ids_that_somebody_changes_end_the_run_with_its_last_step_saved(self):
        run = self.stopped_between_saves()
        content = tools.llmc_file([60000] * 2003)
        with open(self.data, "r+b") as file:  # the same file, which the run has mapped
            file.write(content)
        run.send_signal(signal.SIGCONT)
        self.assertIn("has the id 60000, outside of the vocabulary", self.finish(run, code=1))
        self.assertEqual(self.state()["step"], max(self.steps_of()))


class Index(FaultTest):
    def model(self, name, moved):
        """The model in one shard, with an index in which `moved` lists a tensor that the shard does not have."""
        folder = self.folder / name
        shutil.copytree(tools.MODELS / MODEL, folder)
        shard = folder / "model-00001-of-00001.safetensors"
        (folder / "model.safetensors").rename(shard)
        header, _ = safetensors(shard)
        listed = {key: shard.name for key in [*header, *moved] if key != "__metadata__"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": listed}))
        return folder, shard

    def compile(self, model, plan, code=0):
        done = tools.start("bowline-compile", model, "--mode", "train", "--seq", 16, "--batch", 2, *tools.ONE_THREAD, "-o", plan)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stderr.decode()

    def test_a_tensor_that_only_the_index_has_and_no_parameter_is_a_note(self):
        folder, shard = self.model("m", ["model.layers.0.self_attn.rotary_emb.inv_freq"])
        text = self.compile(folder, self.folder / "x.plan")
        self.assertIn("note: this model does not need tensor 'model.layers.0.self_attn.rotary_emb.inv_freq', which "
                      f"'{folder}/model.safetensors.index.json' lists in '{shard}', but that shard does not have it", text)
        losses = [self.run_plan(self.plan(), "--weights", weights, save=False, steps=1) and tools.metrics_of(self.metrics)
                  for weights in (folder, tools.MODELS / MODEL)]
        self.assertEqual(*losses)

    def test_a_parameter_that_only_the_index_has_is_an_error(self):
        folder, shard = self.model("m", [])
        header, begin = safetensors(shard)
        payload = shard.read_bytes()[begin:]
        header["model.renamed.weight"] = header.pop("model.norm.weight")
        text = json.dumps(header).encode()
        shard.write_bytes(struct.pack("<Q", len(text)) + text + payload)
        index = folder / "model.safetensors.index.json"
        listed = json.loads(index.read_text())
        listed["weight_map"]["model.renamed.weight"] = shard.name
        index.write_text(json.dumps(listed))
        why = f"which '{index}' lists in '{shard}', but that shard does not have it"
        self.assertIn(f"the model needs tensor 'model.norm.weight' (F32 [36]), {why}; fetch the shard and its index again",
                      self.compile(folder, self.folder / "x.plan", code=1))
        self.assertFalse((self.folder / "x.plan").exists())
        for flags in ((), ("--mesh", "dp=2")):
            text = self.run_plan(self.plan(*flags), "--weights", folder, save=False, steps=1, code=1, says=why)
            self.assertIn("'model.norm.weight', ", text)
            self.assertNotIn("step 1/", text)


class Mistakes(FaultTest):
    def test_a_restart_does_not_wait_for_a_reader_that_went(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        run = self.begin(self.plan(), "--data", self.data, "--steps", 10**7, "--save", self.save, "--save-every", 5,
                         "--restarts", 2, "--metrics", pipe, "--quiet")
        with open(pipe, "rb") as reader:
            self.assertIn(b'"step"', reader.readline())
        self.assertIn(f"given up, as no program reads the pipe '{pipe}' any more", self.finish(run, code=3))

    def test_settings_that_somebody_changed_in_a_checkpoint_are_no_recipe(self):
        self.run_plan(self.plan(), steps=4, says="", save=True)
        self.run_plan(self.plan(), "--resume", self.save, steps=6)
        path = self.save / self.latest() / "trainer_state.json"
        text = path.read_text()
        self.assertIn('"lr": 0.001', text)
        path.write_text(text.replace('"lr": 0.001', '"lr": 0.003'))
        says = f"the checkpoint is damaged, and the one before it is '{self.save}/step-00000004'"
        text = self.run_plan(self.plan(), "--resume", self.save, steps=8, code=1, says=says)
        self.assertNotIn("--allow-changes", text)

    def test_a_config_of_a_checkpoint_that_cannot_be_read_is_damage(self):
        self.run_plan(self.plan(), steps=2)
        (self.save / self.latest() / "config.json").write_text("")
        self.run_plan(self.plan(), "--resume", self.save, steps=4, code=1, says="the checkpoint is damaged, and there is none")

    def test_tokens_of_32_bits_are_none_of_16(self):
        tokens = self.folder / "tokens.raw"
        tokens.write_bytes(struct.pack("<2000I", *tools.random_tokens(2000, VOCABULARY - 1)))
        run = self.begin(self.plan(), "--data", f"u16:{tokens}", "--steps", 2)
        self.assertIn(f"every second of them is 0, as where tokens have 32 bits; give u32:{tokens}", self.finish(run, code=1))
        self.finish(self.begin(self.plan(), "--data", f"u32:{tokens}", "--steps", 2), code=0)

    def test_gguf_files_that_are_not_read_are_mistakes(self):
        file = self.folder / "x.gguf"
        for data, says in ((b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version 4 of GGUF is not read"), (b"", "is empty"),
                           (b"not a model", "is no GGUF file; it is text")):
            file.write_bytes(data)
            self.run_plan(self.plan(), "--weights", file, code=1, says=says, save=False)


if __name__ == "__main__":
    tools.main()
