"""Code that the tests of a week of training share: plans, runs of them, and looks at the files that runs left."""

import json
import pathlib
import shutil
import struct
import tempfile

import tools

MODEL = "llama-tiny"
VOCABULARY = 257
SEQ = 16


def safetensors(path):
    """Header, and the bytes behind it."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), 8 + size


class WeekTest(tools.ToolTest):
    """A test of runs of small plans, with data, a save directory and metrics of its own."""

    @classmethod
    def setUpClass(cls):
        cls.plan_folder = pathlib.Path(tempfile.mkdtemp(prefix="bowline-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.plan_folder, ignore_errors=True)

    def plan(self, *flags):
        path = self.plan_folder / ("plan" + "".join(map(str, flags)).replace("/", "") + ".plan")
        if not path.exists():
            batch = [] if "--batch" in flags else ["--batch", 4 if "dp=2" in flags else 2]
            tools.succeed("bowline-compile", tools.MODELS / MODEL, "--mode", "train", "--seq", SEQ, *batch,
                          *tools.ONE_THREAD, *flags, "-o", path)
        return path

    def setUp(self):
        super().setUp()
        # No token is the last one of the vocabulary, so that no step touches the last row of the embedding.
        self.data = self.tokens("d.bin", tools.random_tokens(2003, VOCABULARY - 1))
        self.save, self.metrics = self.folder / "s", self.folder / "m.jsonl"

    def tokens(self, name, tokens):
        (self.folder / name).write_bytes(tools.llmc_file(tokens))
        return self.folder / name

    def run_plan(self, plan, *flags, steps=6, code=0, says="", save=True, **keywords):
        """The text that the run wrote to stderr. A new run has new metrics."""
        metrics = keywords.pop("metrics", self.metrics)
        if "--resume" not in flags and metrics.is_file():
            metrics.unlink()
        done = tools.start("bowline-run", plan, "--data", self.data, "--steps", steps,
                           *(["--save", self.save] if save else []), "--metrics", metrics, *flags, **keywords)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, code, text)
        self.assertIn(says, text)
        return text

    def steps_of(self, key="loss"):
        return [line["step"] for line in tools.metrics_of(self.metrics) if key in line]

    def latest(self):
        return (self.save / "latest").read_text().strip()

    def state(self, step=None):
        name = self.latest() if step is None else f"step-{step:08d}"
        return json.loads((self.save / name / "trainer_state.json").read_text())
