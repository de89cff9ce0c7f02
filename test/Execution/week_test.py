#!/usr/bin/env python3
"""A week of training: what fails beside the steps costs none of them, and a run goes on as it began or says otherwise."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import tools
from week_runs import MODEL, SEQ, VOCABULARY, WeekTest, safetensors


class Week(WeekTest):
    def test_a_stop_during_an_evaluation_saves_and_the_run_evaluates_when_it_is_resumed(self):
        # So long that the signal comes before its end; the shorter file gives the loss to compare with.
        rows = self.tokens("long.bin", tools.random_tokens(3_000_003, VOCABULARY - 1))
        command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
            [self.plan(), "--data", self.data, "--steps", 3, "--save", self.save, "--metrics", self.metrics,
             "--eval-data", rows]))]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "BOWLINE_CACHE_DIR": "off"}) as child:
            while not (self.save / "latest").exists():
                time.sleep(0.01)
            child.send_signal(signal.SIGTERM)
            text = child.communicate(timeout=tools.TIMEOUT_SECONDS)[1]
        self.assertEqual(child.returncode, 75, text)
        self.assertEqual((self.steps_of(), self.steps_of("eval_loss"), self.latest()), ([1, 2, 3], [], "step-00000003"))
        text = self.run_plan(self.plan(), "--resume", self.save, "--eval-data", self.data, steps=3)
        self.assertIn("step 3: evaluation loss", text)
        self.assertEqual((self.steps_of(), self.steps_of("eval_loss")), ([1, 2, 3], [3]))
        # A finished run is evaluated again, which its metrics have already.
        self.run_plan(self.plan(), "--resume", self.save, "--eval-data", self.data, steps=3, says="evaluation loss")
        self.assertEqual(self.steps_of("eval_loss"), [3])

    def test_an_evaluation_that_was_due_is_made_up_for(self):
        flags = ["--eval-data", self.data, "--eval-every", 3, "--save-every", 3]
        self.run_plan(self.plan(), *flags)
        whole = tools.metrics_of(self.metrics)
        # As a kill between the save of step 3 and the end of its evaluation leaves it.
        self.metrics.write_text("".join(line for line in self.metrics.read_text().splitlines(keepends=True)
                                        if '"eval_loss"' not in line))
        self.run_plan(self.plan(), *flags, "--resume", self.save / "step-00000003")
        self.assertEqual(tools.metrics_of(self.metrics), whole)

    def test_metrics_that_a_full_disk_does_not_take_end_the_run_with_its_last_step_saved(self):
        for plan in (self.plan(), self.plan("--mesh", "dp=2")):
            self.metrics = pathlib.Path("/dev/full")
            shutil.rmtree(self.save, ignore_errors=True)
            self.run_plan(plan, "--quiet", steps=1000, code=3, says="/dev/full")
            self.assertIn(self.latest(), ("step-00000001", "step-00000002"))

    def test_data_that_somebody_makes_shorter_ends_the_run_with_its_last_step_saved(self):
        command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
            [self.plan(), "--data", self.data, "--steps", 10_000_000, "--save", self.save, "--metrics", self.metrics]))]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as run:
            while not self.metrics.exists() or len(self.metrics.read_bytes().splitlines()) < 3:
                self.assertIsNone(run.poll())
                time.sleep(0.01)
            os.truncate(self.data, 0)
            message = run.communicate(timeout=600)[1].decode()
        self.assertEqual(run.returncode, 3, message)
        self.assertIn("d.bin' cannot be read any more: it was made shorter", message)
        self.assertEqual(self.state()["step"], max(self.steps_of()))

    def test_a_signal_while_ranks_start_has_the_exit_code_of_a_stop(self):
        for _ in range(5):
            command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
                [self.plan("--mesh", "dp=2"), "--data", self.data, "--steps", 10_000_000, "--nproc", 2]))]
            with subprocess.Popen(command, stderr=subprocess.PIPE) as run:
                children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
                while not children.read_text():
                    self.assertIsNone(run.poll())
                run.send_signal(signal.SIGTERM)
                message = run.communicate(timeout=600)[1].decode()
                self.assertEqual(run.returncode, 75, message)

    def test_results_of_scans_that_cannot_be_read_are_none(self):
        environment = {**os.environ, "BOWLINE_CACHE_DIR": str(self.folder / "cache")}
        for damage in (pathlib.Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"x" * 5000)):
            self.run_plan(self.plan(), save=False, env=environment)
            scan, = (self.folder / "cache" / "scans").glob("*.scan")
            scan.unlink()
            damage(scan)
            self.metrics.unlink()
            self.run_plan(self.plan(), save=False, env=environment)
            scan.rmdir() if scan.is_dir() else scan.unlink()
            self.metrics.unlink()

    def test_an_empty_value_is_not_the_same_as_no_flag(self):
        for flag in ("--save", "--resume", "--weights", "--metrics", "--data"):
            done = tools.start("bowline-run", self.plan(), *([] if flag == "--data" else ["--data", self.data]), "--steps", 1,
                               flag, "")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{flag} has an empty value; give one, or leave it out", done.stderr.decode())
            # Without quotes around the variable, the next flag takes the place of the value.
            for following in (["--quiet"], ["--quite"], ["--seed", 3], ["--seed=3"]):
                done = tools.start("bowline-run", self.plan(), *([] if flag == "--data" else ["--data", self.data]), "--steps", 1,
                                   flag, *following)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{flag} has the flag '{following[0]}' as its value; give one, or leave it out",
                              done.stderr.decode())
                self.assertFalse(pathlib.Path(following[0]).exists())

    def small_disk(self, size="40k"):
        """A folder on a small disk; the file `fill` takes part of it."""
        folder = self.folder / "disk"
        folder.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True)
        if made.returncode != 0:
            self.skipTest("this user may mount nothing")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        return folder

    def test_no_line_of_metrics_is_lost_on_a_full_disk(self):
        for number, flags in enumerate(([], ["--mesh", "dp=2"])):
            disk = self.small_disk() if number == 0 else disk
            self.save, self.metrics = self.folder / f"full{number}", disk / f"m{number}.jsonl"
            (disk / "fill").write_bytes(bytes(30 << 10))
            plan = self.plan(*flags)
            text = self.run_plan(plan, "--save-every", 50, "--quiet", steps=1000, code=3, says=str(self.metrics))
            saved = self.latest()
            done = [line["step"] for line in tools.metrics_of(self.metrics)]  # whole lines alone
            self.assertLess(done[-1], 1000)
            self.assertGreaterEqual(len(self.state()["unwritten_metrics"]), 1, text)
            # It would take no step that it cannot record.
            self.run_plan(plan, "--resume", self.save, "--quiet", steps=1000, code=3, says=str(self.metrics))
            self.assertEqual(self.latest(), saved)
            (disk / "fill").unlink()
            last = self.state()["step"] + 4
            self.run_plan(plan, "--resume", self.save, "--quiet", steps=last)
            self.assertEqual(self.steps_of(), list(range(1, last + 1)))
            self.assertNotIn("unwritten_metrics", self.state())
            self.metrics.unlink()

    def test_restarts_give_up_on_a_full_disk(self):
        disk = self.small_disk()
        self.metrics = disk / "m.jsonl"
        (disk / "fill").write_bytes(bytes(30 << 10))
        text = self.run_plan(self.plan("--mesh", "dp=2"), "--save-every", 20, "--quiet", "--nproc", 2, "--restarts", 2,
                             steps=1000, code=3, says="given up after 3 failures in a row without progress")
        self.assertEqual(len(re.findall("bowline-run: note: rank . .* restart [12] of 2", text)), 2, text)
        last = self.state()["step"]
        # The last step, too, is done when its line is written.
        self.run_plan(self.plan("--mesh", "dp=2"), "--resume", self.save, "--quiet", steps=last, code=3)
        (disk / "fill").unlink()
        self.run_plan(self.plan("--mesh", "dp=2"), "--resume", self.save, steps=last, says="nothing to do")
        self.assertEqual(self.steps_of(), list(range(1, last + 1)))

    def test_restarts_give_up_where_no_start_gets_further(self):
        self.save = self.small_disk("1500k") / "s"  # two checkpoints
        text = self.run_plan(self.plan(), "--save-every", 1, "--quiet", "--restarts", 2, steps=1000, code=3,
                             says="given up after 3 failures in a row without progress")
        self.assertEqual(len(re.findall("restart [0-9] of 2, from ", text)), 2, text)

    def test_a_disk_without_room_for_a_checkpoint_is_a_note(self):
        self.save = self.small_disk("200k") / "s"
        text = self.run_plan(self.plan(), code=3)
        self.assertRegex(text, "note: a checkpoint takes 0.000[0-9]* GB, and the disk of .* has room for")
        self.assertLess(text.index("make room before the first save"), text.index("was not saved"))

    def test_steps_that_the_metrics_lack_are_named(self):
        self.run_plan(self.plan(), steps=2)
        self.run_plan(self.plan(), "--resume", self.save, metrics=self.folder / "other.jsonl", steps=5)
        text = self.run_plan(self.plan(), "--resume", self.save, steps=6)
        self.assertIn(f"note: '{self.metrics}' has no line of steps 3 to 5", text)
        self.assertEqual(self.steps_of(), [1, 2, 6])

    def test_a_pipe_whose_reader_goes_ends_the_run_with_its_last_step_saved(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["head", "-n", "3", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.metrics = pipe
            text = self.run_plan(self.plan(), "--quiet", steps=10**7, code=3, says=f"cannot write '{pipe}': Broken pipe")
            lines = [json.loads(line) for line in reader.stdout]
        self.assertEqual([line["step"] for line in lines], [1, 2, 3])
        state = self.state()
        self.assertGreaterEqual(state["step"], 3, text)
        self.assertIn(f'"step":{state["step"]},', state["unwritten_metrics"][-1])

    def test_a_pipe_that_nobody_reads_is_waited_for(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for how in (["--data", self.data, "--steps", 3, "--save", self.save], ["--eval-data", self.data, "--weights", self.save]):
            command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
                [self.plan(), *how, "--metrics", pipe, "--quiet"]))]
            for stops in (True, False):
                with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, "BOWLINE_CACHE_DIR": "off"}) as child:
                    self.assertEqual(child.stderr.readline(),
                                     f"bowline-run: note: waiting for a program that reads the pipe '{pipe}'\n")
                    if stops:
                        child.send_signal(signal.SIGTERM)
                    else:
                        lines = pipe.read_text().splitlines()
                        self.assertEqual(len(lines), 4 if "--save" in how else 1)
                    child.communicate(timeout=tools.TIMEOUT_SECONDS)
                self.assertEqual(child.returncode, 75 if stops else 0)

    def test_a_reader_that_takes_nothing_does_not_keep_a_run_from_stopping(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
            [self.plan(), "--data", self.data, "--steps", 10**7, "--save", self.save, "--metrics", pipe, "--quiet"]))]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "BOWLINE_CACHE_DIR": "off"}) as child:
            size = -1
            while True:  # until the pipe is full
                before, size = size, int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), "little")
                if size == before and size > 60_000:
                    break
                time.sleep(0.2)
            child.send_signal(signal.SIGTERM)
            text = child.communicate(timeout=tools.TIMEOUT_SECONDS)[1]
        self.assertEqual(child.returncode, 3, text)
        self.assertIn("the program at the other end of the pipe reads nothing", text)
        self.assertEqual(len(self.state()["unwritten_metrics"]), 1)

    def test_no_run_writes_over_the_metrics_of_another(self):
        self.run_plan(self.plan(), steps=6)
        text = self.metrics.read_text()
        self.assertEqual(json.loads(text.splitlines()[0])["run"], self.state()["run"])
        own, self.save = self.save, self.folder / "r0"
        other = self.folder / "other.jsonl"
        self.run_plan(self.plan(), metrics=other, steps=4)
        evaluates = ["--eval-data", self.data]

        def refuse(says, *arguments):
            done = tools.start("bowline-run", self.plan(), *arguments, "--metrics", self.metrics)
            self.assertEqual(done.returncode, 1, done.stderr.decode())
            self.assertIn(f"'{self.metrics}' {says}", done.stderr.decode())
            self.assertNotIn("step 1/", done.stderr.decode())
            self.assertEqual(self.metrics.read_text(), text)

        data = ["--data", self.data]
        refuse("holds metrics of an earlier run", *data, "--steps", 2)
        refuse("holds metrics of an earlier run", *data, "--steps", 2, "--weights", own, "--save", self.folder / "new")
        self.assertFalse((self.folder / "new").exists())
        refuse("holds metrics of an earlier run", *evaluates, "--weights", own)
        refuse("holds metrics of another run", *data, "--steps", 4, "--resume", self.save, *evaluates)
        refuse("holds metrics of another run", *data, "--steps", 9, "--resume", self.save)
        # Its own are kept by a run that is finished before their end.
        self.save = own
        self.run_plan(self.plan(), "--resume", own, *evaluates, steps=5, says="step 6: evaluation loss")
        self.assertTrue(self.metrics.read_text().startswith(text))

    def test_two_runs_at_a_time_do_not_share_metrics(self):
        command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
            [self.plan(), "--data", self.data, "--steps", 10**7, "--metrics", self.metrics, "--quiet"]))]
        with subprocess.Popen(command, env={**os.environ, "BOWLINE_CACHE_DIR": "off"}) as child:
            try:
                while not self.metrics.exists() or not self.metrics.read_text():
                    time.sleep(0.01)
                done = tools.start("bowline-run", self.plan(), "--data", self.data, "--steps", 3, "--save", self.save,
                                   "--metrics", self.metrics)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"another run is writing '{self.metrics}'", done.stderr.decode())
            finally:
                child.kill()

    def test_a_due_evaluation_is_made_up_for_without_metrics(self):
        flags = ["--eval-data", self.data, "--eval-every", 3]
        for plan, how in ((self.plan(), []), (self.plan("--mesh", "dp=2"), ["--nproc", 2])):
            shutil.rmtree(self.save, ignore_errors=True)
            self.run_plan(plan, *flags, steps=3)
            for steps in (4, 5):
                done = tools.start("bowline-run", plan, "--data", self.data, "--resume", self.save / "step-00000003", *flags,
                                   "--steps", steps, *how)
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertIn("step 3: evaluation loss", done.stderr.decode())

    def test_another_evaluation_of_a_finished_run_is_recorded(self):
        self.run_plan(self.plan(), "--eval-data", self.data, steps=3)
        other = self.tokens("other.bin", tools.random_tokens(401, VOCABULARY - 1, seed=2))
        for _ in range(2):
            for data in (self.data, other):
                self.run_plan(self.plan(), "--resume", self.save, "--eval-data", data, steps=3, says="evaluation loss")
        self.assertEqual(self.steps_of("eval_loss"), [3, 3])
        self.run_plan(self.plan(), "--eval-data", other, metrics=self.folder / "e.jsonl", steps=3, save=False)
        self.assertEqual(tools.metrics_of(self.metrics)[-1], tools.metrics_of(self.folder / "e.jsonl")[-1])

    def test_a_directory_that_cannot_be_written_is_said_before_step_1(self):
        (self.folder / "s").write_text("a file")
        text = self.run_plan(self.plan(), code=1, says=str(self.save))
        self.assertNotIn("step 1/", text)
        self.save.unlink()
        self.save.symlink_to("nowhere")  # as when a disk is not mounted
        self.run_plan(self.plan(), code=1, says="is a symbolic link to 'nowhere', which is not there")

    def test_another_recipe_is_refused_or_recorded(self):
        self.run_plan(self.plan(), steps=3)
        other = self.plan("--lr", "0.002", "--beta2", "0.99", "--clip-norm", "0")
        text = self.run_plan(other, "--resume", self.save, code=1)
        for row in ("setting    checkpoint  this run", "beta2      0.95        0.99", "clip-norm  1.0         0.0",
                    "lr         0.001       0.002", "--allow-changes beta2,clip-norm,lr"):
            self.assertIn(row, text)
        self.run_plan(other, "--resume", self.save, "--allow-changes", "lr", code=1, says="beta2")
        self.assertEqual(self.steps_of(), [1, 2, 3])
        text = self.run_plan(other, "--resume", self.save, "--allow-changes", "lr,beta2,clip-norm")
        self.assertIn("note: from step 4 on lr is 0.002, and no longer 0.001", text)
        changes = [line for line in tools.metrics_of(self.metrics) if "changes" in line]
        self.assertEqual(changes, [{"step": 4, "changes": {"beta2": {"from": "0.95", "to": "0.99"},
                                                           "clip-norm": {"from": "1.0", "to": "0.0"},
                                                           "lr": {"from": "0.001", "to": "0.002"}}}])
        self.assertEqual(self.state()["recipe"]["lr"], 0.002)
        self.assertEqual(self.state(3)["run"], self.state(6)["run"])
        # It goes on with what it has now; the seed and the batch are settings, too.
        self.run_plan(other, "--resume", self.save, steps=7)
        for flag, value in (("seed", 3), ("batch", 4)):
            self.run_plan(self.plan(f"--{flag}", value), "--resume", self.save, steps=9, code=1, says=f"\n  {flag} ")

    def test_every_setting_of_the_optimizer_is_compared(self):
        cosine = ["--lr-schedule", "cosine", "--decay-steps", 9]
        self.run_plan(self.plan(*cosine), steps=1)
        changes = {"optimizer": "sgd", "dtype": "bf16", "lr": 0.002, "lr-schedule": "constant", "warmup-steps": 2,
                   "clip-norm": 0, "decay-steps": 8, "min-lr": 0.0005, "beta1": 0.8, "beta2": 0.99, "eps": 1e-6,
                   "weight-decay": 0}
        self.assertEqual(self.state()["recipe"].keys(), changes.keys())
        # A flag of training that is new is a setting, or says how a step is computed, which changes its rounding alone.
        how = {"--batch", "--microbatches", "--zero", "--zero-axis", "--prefetch", "--zero-once", "--zero-each", "--schedule", "--stages",
               "--recompute", "--bucket-bytes", "--runs-in-flight"}
        described = re.split(r"\n  (?=-)", tools.succeed("bowline-compile", "--help").decode().split("\n\nPhases:")[0])
        flags = {text.split()[0] for text in described if text.endswith("(train)")}
        self.assertEqual(flags, how | {f"--{name}" for name in changes.keys() - {"dtype"}})
        for name, value in changes.items():
            schedule = [] if name == "lr-schedule" else cosine if name != "decay-steps" else cosine[:2]
            self.run_plan(self.plan(*schedule, f"--{name}", value), "--resume", self.save, steps=9, code=1,
                          says=f"\n  {name} ")

    def test_another_optimizer_is_no_change_that_can_be_allowed(self):
        adamw, sgd = self.plan(), self.plan("--optimizer", "sgd")
        for before, after in ((adamw, sgd), (sgd, adamw)):
            shutil.rmtree(self.save, ignore_errors=True)
            self.metrics.unlink(missing_ok=True)
            self.run_plan(before, steps=3)
            for allow in ([], ["--allow-changes", "optimizer"]):
                text = self.run_plan(after, "--resume", self.save, *allow, code=1, says="another optimizer")
                self.assertIn("\n  optimizer ", text)
                self.assertNotIn("by --allow-changes", text)
            weights = text.split("--weights ")[1].split()[0]
            self.run_plan(after, "--weights", weights, steps=1, save=False)

    def test_a_checkpoint_of_before_goes_on_with_a_note(self):
        self.run_plan(self.plan(), steps=3)
        path = self.save / self.latest() / "trainer_state.json"
        state = self.state()
        del state["run"], state["recipe"]
        path.write_text(json.dumps(state))
        self.run_plan(self.plan("--lr", "0.002"), "--resume", self.save,
                      says="does not say with which settings it was trained", metrics=self.folder / "new.jsonl")
        self.assertEqual(self.state()["recipe"]["lr"], 0.002)

    def test_a_plan_without_settings_goes_on_with_a_note(self):
        self.run_plan(self.plan(), steps=3)
        sizes = ["--batch", 2, "--seq", SEQ]
        text = tools.succeed("bowline-compile", tools.MODELS / MODEL, *sizes, *tools.ONE_THREAD, "--compile-to=train", "-o", "-")
        program, plan = self.folder / "old.mlir", self.folder / "old.plan"
        kept = [line for line in text.decode().splitlines(keepends=True) if 'plan.attachment "recipe.json"' not in line]
        self.assertEqual(len(kept), text.count(b"\n") - 1)
        program.write_text("".join(kept))
        tools.succeed("bowline-compile", program, "--compile-from=train", *tools.ONE_THREAD, "-o", plan)
        self.run_plan(plan, "--resume", self.save, says=f"'{plan}' does not say with which settings it trains")

    def test_a_second_run_into_a_save_directory_is_refused(self):
        self.run_plan(self.plan(), steps=3)
        before = (self.save / self.latest() / "model.safetensors").read_bytes()
        self.run_plan(self.plan(), code=1, says="holds checkpoints of another run, the latest step-00000003")
        self.assertEqual((self.save / self.latest() / "model.safetensors").read_bytes(), before)
        # While the first one runs, and has saved nothing.
        shutil.rmtree(self.save)
        for how in ([], ["--nproc", "2"]):
            plan = self.plan("--mesh", "dp=2")
            command = [tools.tool("bowline-run"), *map(str, tools.on_test_driver(
                [plan, "--data", self.data, "--steps", 10**7, "--save", self.save, "--quiet", *how]))]
            with subprocess.Popen(command, env={**os.environ, "BOWLINE_CACHE_DIR": "off"}) as child:
                try:
                    while not (self.save / ".lock").exists() or not (self.save / ".lock").read_text():
                        time.sleep(0.01)
                    self.run_plan(plan, code=1, says="another run is saving into")
                finally:
                    child.kill()
            shutil.rmtree(self.save)

    def test_a_checkpoint_is_no_directory_to_save_into(self):
        self.run_plan(self.plan(), steps=2)
        self.run_plan(self.plan(), "--resume", self.save / "step-00000002", "--save", self.save / "step-00000002",
                      save=False, code=1, says=f"is a checkpoint, and checkpoints do not lie in each other; give --save {self.save},")
        for name in ("step-00000099", "step-00000099/"):
            self.run_plan(self.plan(), "--save", f"{self.save}/{name}", save=False, code=1,
                          says=f"has the name of a checkpoint, and checkpoints do not lie in each other; give --save {self.save},")
        self.assertEqual(sorted(path.name for path in self.save.glob("step-*/*")),
                         ["config.json", "model.safetensors", "optimizer.safetensors", "trainer_state.json"])

    def test_weights_beside_checkpoints_are_told_apart(self):
        self.save = self.folder / "model"
        shutil.copytree(tools.MODELS / MODEL, self.save)
        self.run_plan(self.plan(), "--weights", self.save, steps=2)
        text = self.run_plan(self.plan(), "--weights", self.save, save=False, steps=1)
        self.assertIn(f"note: '{self.save}' has weights of its own, which were taken; for those of "
                      f"'{self.save}/step-00000002' give --weights {self.save}/step-00000002", text)
        self.assertNotIn("weights of its own", self.run_plan(self.plan(), "--weights", self.save / "step-00000002",
                                                             save=False, steps=1))

    def test_a_damaged_checkpoint_names_the_one_before_it(self):
        def cut(name, size):
            def change(folder):
                (folder / name).write_bytes((folder / name).read_bytes()[:size])
            return change

        damages = (((cut("model.safetensors", -100)), "the file is truncated, get a whole copy of it"),
                   (cut("optimizer.safetensors", 100), "the file is truncated, get a whole copy of it"),
                   (cut("trainer_state.json", 50), "not valid JSON"),
                   (lambda folder: (folder / "optimizer.safetensors").unlink(), "cannot open"),
                   (lambda folder: (folder / "trainer_state.json").unlink(), "cannot open"))
        self.run_plan(self.plan(), "--save-every", 2, steps=4)
        for damage, message in damages:
            before = self.folder / "before"
            shutil.copytree(self.save, before)
            damage(self.save / "step-00000004")
            text = self.run_plan(self.plan(), "--resume", self.save, code=1, says=message)
            self.assertIn(f"; the checkpoint is damaged, and the one before it is '{self.save}/step-00000002'", text)
            shutil.rmtree(self.save)
            before.rename(self.save)
        # Of several ranks.
        folder, self.save = self.save, self.folder / "ranks"
        self.run_plan(self.plan("--mesh", "dp=2"), steps=2)
        (self.save / "step-00000002" / "shards.json").unlink()
        self.run_plan(self.plan("--mesh", "dp=2"), "--resume", self.save, code=1,
                      says="has 'parameters.rank-00000.safetensors' of a rank, but no shards.json")
        self.save = folder
        shutil.rmtree(self.save / "step-00000002")
        cut("model.safetensors", -100)(self.save / "step-00000004")
        self.run_plan(self.plan(), "--resume", self.save, code=1, says="is damaged, and there is none before it")

    def test_a_latest_checkpoint_that_is_gone_is_named(self):
        self.run_plan(self.plan(), "--save-every", 2, steps=4)
        shutil.rmtree(self.save / "step-00000004")
        self.run_plan(self.plan(), "--resume", self.save, steps=3,
                      says=f"note: '{self.save}/latest' names step-00000004, which is not there; '{self.save}/step-00000002' has "
                           "the highest step of those that are")

    def test_keep_deletes_checkpoints_of_its_own_run_alone(self):
        self.run_plan(self.plan(), "--save-every", 1, steps=2)
        shutil.copytree(self.save / "step-00000001", self.folder / "other")
        self.run_plan(self.plan(), "--resume", self.save, "--save-every", 1, "--keep", 1, steps=3)
        self.assertEqual(sorted(path.name for path in self.save.glob("step-*")), ["step-00000003"])
        other = json.loads((self.folder / "other" / "trainer_state.json").read_text())
        (self.folder / "other" / "trainer_state.json").write_text(json.dumps({**other, "run": "another"}))
        shutil.copytree(self.folder / "other", self.save / "step-00000001")
        self.run_plan(self.plan(), "--resume", self.save, "--save-every", 1, "--keep", 1, steps=5)
        self.assertEqual(sorted(path.name for path in self.save.glob("step-*")), ["step-00000001", "step-00000005"])

    def poison(self, key, row):
        """Writes a NaN into the row of a parameter of the latest checkpoint."""
        path = self.save / self.latest() / "model.safetensors"
        header, begin = safetensors(path)
        tensor = header[key]
        self.assertEqual(tensor["dtype"], "F32")
        with open(path, "r+b") as file:
            file.seek(begin + tensor["data_offsets"][0] + 4 * row * tensor["shape"][1])
            file.write(struct.pack("<f", float("nan")))

    def test_weights_that_are_not_finite_are_refused_before_step_1(self):
        key = "model.embed_tokens.weight"
        self.run_plan(self.plan(), steps=2)
        self.poison(key, VOCABULARY - 1)
        weights = self.save / self.latest()
        where = f"'{key}' is not finite from element [{VOCABULARY - 1}, 0] on"
        for number, (flags, ranks) in enumerate((([], ""), (["--mesh", "dp=2"], "rank 1: "),
                                                 (["--mesh", "dp=2", "--zero", 3], "rank 1: "))):
            with self.subTest(flags=flags):
                self.save = self.folder / f"poisoned{number}"
                text = self.run_plan(self.plan(*flags), "--weights", weights, "--save-every", 2, code=4)
                self.assertIn(f"the weights in '{weights}': {ranks}the parameter {where}; ", text)
                self.assertNotIn("step 1/", text)
                self.assertFalse(self.save.exists())
                text = self.run_plan(self.plan(*flags), "--weights", weights, "--allow-non-finite")
                if not ranks:  # of other ranks the checkpoint's note tells
                    self.assertIn(f"note: the weights in '{weights}': the parameter {where}\n", text)
                self.assertIn(f"{where}; saved all the same", text)
                self.assertEqual(self.latest(), "step-00000006")

    def test_a_state_that_is_not_finite_is_not_saved_though_the_loss_is(self):
        # The first step multiplies each weight by 3e40, which no f32 holds; its loss and gradients are of before.
        overflows = ["--lr", 3e38, "--weight-decay", 100]
        for flags in ([], ["--mesh", "dp=2"], ["--mesh", "dp=2", "--zero", 3]):
            with self.subTest(flags=flags):
                shutil.rmtree(self.save, ignore_errors=True)
                text = self.run_plan(self.plan(*flags, *overflows), steps=1, code=4)
                self.assertRegex(text, r"checkpoint of step 1 was not saved: (rank \d: )?the parameter '\S+' is not finite "
                                       r"from element \[[0-9, ]+\] on; it became so after step 0")
                self.assertEqual([path.name for path in self.save.iterdir()], [".lock"])
                text = self.run_plan(self.plan(*flags, *overflows), "--allow-non-finite", steps=1, says="saved all the same")
                self.assertEqual(self.latest(), "step-00000001")

    def test_a_checkpoint_that_is_not_finite_is_not_resumed(self):
        key = "model.embed_tokens.weight"
        for flags in ([], ["--mesh", "dp=2", "--batch", 2]):
            with self.subTest(flags=flags):
                shutil.rmtree(self.save, ignore_errors=True)
                self.run_plan(self.plan(), steps=2)
                self.poison(key, VOCABULARY - 1)
                text = self.run_plan(self.plan(*flags), "--resume", self.save, code=4)
                self.assertIn(f"{key}' is not finite from element [{VOCABULARY - 1}, 0] on; it was saved so", text)
                self.assertNotIn("became so", text)
                self.run_plan(self.plan(*flags), "--resume", self.save, "--allow-non-finite", says="saved all the same")

    def test_a_checkpoint_without_a_config_is_resumed_with_a_note(self):
        self.run_plan(self.plan(), steps=2)
        (self.save / self.latest() / "config.json").unlink()
        self.run_plan(self.plan(), "--resume", self.save, says="has no config.json")

    def test_weights_that_cannot_be_read_are_named(self):
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
        for plan in (self.plan(), self.plan("--mesh", "dp=2")):
            shutil.rmtree(self.save, ignore_errors=True)
            self.run_plan(plan, steps=2)
            (self.save / self.latest() / "trainer_state.json").write_text(pointer)
            self.run_plan(plan, "--weights", self.save, save=False, code=1, says="trainer_state.json' is a Git LFS pointer")
        model = self.folder / "model"
        model.mkdir()
        # A server's answer, or another file, in the place of the weights.
        for content, message in ((b'{"error":"Invalid username or password."}', "it is text, and begins with '{\"error\":"),
                                 (b"Entry not found", "it is text, and begins with 'Entry not found'"),
                                 (b"\x80\x04\x95\xb0\x0f\0\0\0\0\0\0\0}q\0.", "it is a Python pickle"), (b"", "is empty")):
            (model / "model.safetensors").write_bytes(content)
            self.run_plan(self.plan(), "--weights", model, save=False, code=1, says=message)
        (model / "model.safetensors").unlink()
        (model / "pytorch_model.bin").write_bytes(b"PK\3\4")
        self.run_plan(self.plan(), "--weights", model, save=False, code=1,
                      says="holds pytorch_model.bin and no model.safetensors; weights that torch.save wrote are not read")

    def test_files_of_another_run_are_refused(self):
        plan = self.plan("--mesh", "dp=2")
        self.run_plan(plan, steps=2)
        first, self.save = self.save, self.folder / "other"
        self.run_plan(plan, steps=2)
        for path in (first / "step-00000002").glob("*rank-00001*"):
            shutil.copy(path, self.save / "step-00000002")
        self.run_plan(plan, "--resume", self.save, code=1, says="was saved by run")
        self.run_plan(plan, "--weights", self.save / "step-00000002", save=False, code=1, says="was saved by run")
        done = tools.start("bowline-data", "export-checkpoint", self.save, "-o", self.folder / "exported")
        self.assertEqual(done.returncode, 1)

    def test_a_changed_state_is_refused(self):
        self.run_plan(self.plan(), steps=4)
        path = self.save / self.latest() / "trainer_state.json"
        good = self.state()
        for change in ({"next_draw": 9}, {"batch": 0}, {"sequence": 0}, {"recipe": {"l\x1br": 1}}, {"run": "../../x"},
                       {"recipe": {**good["recipe"], "lr": 0.5}}):
            path.write_text(json.dumps({**good, **change}))
            text = self.run_plan(self.plan(), "--resume", self.save, code=1)
            self.assertNotIn("\x1b", text)
            self.assertNotIn("the plan's recipe", text)
        path.write_text(json.dumps(good))
        self.run_plan(self.plan(), "--resume", self.save)

    def test_an_evaluation_that_is_not_finite_has_the_exit_code_of_training(self):
        self.run_plan(self.plan(), steps=2)
        self.poison("model.embed_tokens.weight", 5)
        done = tools.start("bowline-run", self.plan(), "--eval-data", self.data, "--weights", self.save)
        self.assertEqual(done.returncode, 4, done.stderr.decode())
        self.assertIn("the evaluation loss is nan", done.stderr.decode())

    def test_saves_beside_the_steps_are_those_of_the_steps(self):
        flags = ["--order", "shuffle", "--save-every", 2]
        for plan in (self.plan(), self.plan("--mesh", "dp=2")):
            self.run_plan(plan, *flags, steps=8)
            lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
            saves = [line for line in lines if "save_s" in line]
            self.assertEqual([line["step"] for line in saves], [2, 4, 6, 8])
            for line in saves:
                self.assertLessEqual(line["save_stall_s"], line["save_s"])
            whole = {path.name: path.read_bytes() for path in (self.save / "step-00000008").glob("*.safetensors")}
            self.run_plan(plan, *flags, "--resume", self.save / "step-00000004", steps=8)
            again = {path.name: path.read_bytes() for path in (self.save / "step-00000008").glob("*.safetensors")}
            self.assertEqual(again, whole)
            shutil.rmtree(self.save)

    def test_a_checkpoint_says_its_type_and_may_have_bf16(self):
        model = self.folder / "model"
        shutil.copytree(tools.MODELS / MODEL, model)
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16"}))
        for flags in ([], ["--mesh", "dp=2", "--zero", 3], ["--mesh", "tp=2"]):
            plan = self.folder / "x.plan"
            tools.succeed("bowline-compile", model, "--mode", "train", "--seq", SEQ, "--batch", 4, *flags,
                          *tools.ONE_THREAD, "-o", plan)
            losses, ends = {}, {}
            for dtype, name in (("f32", "float32"), ("bf16", "bfloat16")):
                shutil.rmtree(self.save, ignore_errors=True)
                flags = [] if dtype == "f32" else ["--save-dtype", dtype]
                self.run_plan(plan, *flags, steps=3)
                self.run_plan(plan, *flags, "--resume", self.save, steps=6)
                losses[dtype] = tools.metrics_of(self.metrics)
                ends[dtype] = self.folder / dtype
                self.assertEqual(json.loads((self.save / self.latest() / "config.json").read_text()),
                                 {**config, "torch_dtype": name})
                shutil.rmtree(ends[dtype], ignore_errors=True)
                tools.succeed("bowline-data", "export-checkpoint", self.save, "-o", ends[dtype])
            self.assertEqual(*losses.values())
            exact, _ = safetensors(ends["f32"] / "model.safetensors")
            rounded, begin = safetensors(ends["bf16"] / "model.safetensors")
            self.assertEqual({key: value["shape"] for key, value in exact.items() if key != "__metadata__"},
                             {key: value["shape"] for key, value in rounded.items() if key != "__metadata__"})
            self.assertEqual({value["dtype"] for key, value in rounded.items() if key != "__metadata__"}, {"BF16"})
            # To nearest even, computed on the bits.
            key = "model.norm.weight"
            wide, narrow = ([*struct.unpack(f"<{size}{code}", (ends[dtype] / "model.safetensors").read_bytes()
                             [start + header[key]["data_offsets"][0]:start + header[key]["data_offsets"][1]])]
                            for dtype, header, start, code in (("f32", exact, safetensors(ends["f32"] / "model.safetensors")[1], "I"),
                                                               ("bf16", rounded, begin, "H"))
                            for size in header[key]["shape"])
            self.assertEqual(narrow, [(bits + 0x7fff + (bits >> 16 & 1)) >> 16 for bits in wide])
            # Either is a model: for weights, and for the compiler.
            for dtype in ends:
                tools.succeed("bowline-run", plan, "--eval-data", self.data, "--eval-batches", 2, "--weights", ends[dtype])


if __name__ == "__main__":
    tools.main()
