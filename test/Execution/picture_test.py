#!/usr/bin/env python3
"""Pictures of plans: the SVG files of `bowline inspect --svg` are XML, and show the times of --trace and the bytes of
--memory."""

import json
import re
import xml.etree.ElementTree as ElementTree

import tools

SVG = "{http://www.w3.org/2000/svg}"
# Every machine runs code of this level, and the cost model takes its rates from it: so pictures are the same everywhere.
FLAGS = [*tools.ONE_THREAD, "--target-cpu", "x86-64-v2", "--no-codegen"]
PIPELINE = ["--mode", "train", "--batch", "8", "--seq", "12", "--microbatches", "8", *FLAGS]
TRAIN = ["--mode", "train", "--batch", "4", "--seq", "13", *FLAGS]
SERVE = ["--mode", "serve", "--buckets", "1,5", "--max-batch", "3", "--max-context", "23", "--block-tokens", "4",
         "--kv-blocks", "20", *FLAGS]
COMMITTED = tools.TEST_DIR.parent / "docs" / "pictures" / "pipeline.svg"
FIRST_MODEL = tools.TEST_DIR.parent / "examples" / "first-model"


def text_of(element):
    """The text of an element without its title."""
    return "".join([element.text or "", *(child.tail or "" for child in element)])


class Picture:
    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.text = path.read_text()

    def groups(self, kind):
        return [group for group in self.root.iter(SVG + "g") if group.get("class") == kind]

    def idle_shares(self):
        """By role, as a percentage with one digit."""
        shares = []
        for row in self.groups("row"):
            shares += [text_of(text)[:-2] for text in row.iter(SVG + "text") if text_of(text).endswith(" %")]
        return shares

    def peaks(self):
        """By role, in bytes."""
        return [int(re.search(r"\((\d+) bytes\)", "".join(map(text_of, group.iter(SVG + "text"))))[1])
                for group in self.groups("memory")]

    def microbatches(self, row):
        """The numbers in the boxes of a row."""
        return [int(text_of(text)) for text in self.groups("row")[row].iter(SVG + "text")
                if text.get("class") == "number"]

    def activities(self):
        """The titles of boxes, up to their first comma."""
        return [rectangle[0].text.split(",")[0] for row in self.groups("row") for rectangle in row.iter(SVG + "rect")
                if len(rectangle) and rectangle.get("class").startswith("a")]


class Pictures(tools.ToolTest):
    def compile(self, name, model, *flags):
        plan = self.folder / f"{name}.plan"
        tools.succeed("bowline-compile", model, *flags, "-o", plan)
        return plan

    def deeper(self, layers):
        """llama-tiny with more layers, of which compilation needs the sizes alone."""
        folder = self.folder / f"layers{layers}"
        folder.mkdir()
        config = json.loads((tools.MODELS / "llama-tiny" / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}))
        return folder

    def draw(self, plan, *flags):
        path = plan.with_suffix(".svg")
        self.assertEqual(tools.succeed("bowline-inspect", plan, "--svg", path, *flags), b"")
        return Picture(path)

    def check_facts(self, plan, entry, *flags):
        """Draws the entry, compares the picture with the trace and the memory of it, and returns the picture."""
        picture = self.draw(plan, *flags)
        inspected = json.loads(tools.succeed("bowline-inspect", plan, "--memory", "--json"))
        entries = [each for each in inspected["entries"] if each["name"] == entry]
        self.assertEqual(picture.peaks(), [each["memory"]["peak_bytes"] for each in entries])
        streams = {each["name"]: len(each["streams"]) for each in inspected["programs"]}
        rows = len(picture.groups("row"))
        if len(entries) == 1:
            self.assertEqual(rows, streams[entries[0]["program"]])
        trace = plan.with_suffix(".json")
        tools.succeed("bowline-inspect", plan, "--trace", trace, *flags)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertEqual(rows, sum(event["name"] == "thread_name" for event in events))
        self.assertEqual(picture.idle_shares(), self.idle_shares_of(events))
        return picture

    def idle_shares_of(self, events):
        slices = [event for event in events if event["ph"] == "X"]
        total = max(event["ts"] + event["dur"] for event in slices)
        shares = []
        for process in sorted({event["pid"] for event in slices}):
            busy = sum(event["dur"] for event in slices
                       if event["pid"] == process and event["tid"] == 0 and event["cat"] != "wait")
            shares.append(f"{100 * max(0.0, 1 - busy / total):.1f}")
        return shares

    def test_one_rank(self):
        picture = self.check_facts(self.compile("one", tools.MODELS / "llama-tiny", *TRAIN), "train_step")
        self.assertEqual(picture.idle_shares(), ["0.0"])
        self.assertEqual(set(picture.activities()), {"forward", "backward", "update"})
        self.assertIn("llama-tiny: train_step", picture.text)

    def test_schedules_of_pipelines(self):
        model = self.deeper(8)
        for schedule, first_rank in (("1f1b", 16), ("zb_h1", 16), ("interleaved:2", 32)):
            with self.subTest(schedule=schedule):
                plan = self.compile(schedule.replace(":", "-"), model, *PIPELINE, "--mesh", "pp=4", "--schedule", schedule)
                picture = self.check_facts(plan, "train_step")
                self.assertEqual(len(picture.peaks()), 4)
                boxes = [title for title in picture.activities() if " of microbatch " in title]
                # Rank 0 needs no gradient of its input, so that its backward passes are not halved.
                halves = 0 if schedule != "zb_h1" else 3 * 8
                self.assertEqual(len(boxes), 4 * first_rank + halves)
                numbers = picture.microbatches(0)
                self.assertEqual({number: numbers.count(number) for number in numbers},
                                 {number: first_rank // 8 for number in range(8)})
                self.assertEqual("later chunks" in picture.text, schedule == "interleaved:2")
                self.assertEqual("backward (weight)" in picture.text, schedule == "zb_h1")

    def test_serving(self):
        plan = self.compile("serve", tools.MODELS / "llama-tiny", *SERVE)
        self.check_facts(plan, "step_1")
        self.check_facts(plan, "step_5", "--entry", "step_5")
        self.check_facts(plan, "init", "--entry", "init")

    def test_a_large_pipeline_makes_no_large_file(self):
        plan = self.compile("large", self.deeper(16), *PIPELINE[:2], "--batch", "64", "--seq", "8", "--microbatches", "64",
                            *FLAGS, "--mesh", "pp=16", "--schedule", "1f1b")
        picture = self.check_facts(plan, "train_step")
        self.assertEqual(len(picture.peaks()), 16)
        self.assertLess(len(picture.text), 4 << 20)

    def test_a_link_changes_the_times(self):
        plan = self.compile("link", tools.MODELS / "llama-tiny", *PIPELINE, "--mesh", "pp=2", "--schedule", "1f1b")
        usual = self.check_facts(plan, "train_step")
        slow = self.check_facts(plan, "train_step", "--link", "bandwidth=1MB/s,latency=1ms")
        self.assertGreater(float(slow.idle_shares()[0]), float(usual.idle_shares()[0]))

    def test_the_same_plan_gives_the_same_bytes(self):
        plan = self.compile("same", tools.MODELS / "llama-tiny", *TRAIN, "--mesh", "dp=2")
        self.assertEqual(self.draw(plan).text, self.draw(plan).text)

    def test_pictures_refer_to_nothing_else(self):
        text = self.draw(self.compile("alone", tools.MODELS / "llama-tiny", *TRAIN)).text
        self.assertNotRegex(text, r"(?i)<script|href|url\(|@import|<image|\son\w+=")
        self.assertEqual(re.findall(r"https?://[^\"]*", text), ["http://www.w3.org/2000/svg"])

    def test_names_are_escaped(self):
        plan, text, changed = (self.folder / f"names.{suffix}" for suffix in ("plan", "mlir", "2.plan"))
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *TRAIN, "-o", plan)
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        before = text.read_text()
        after = before.replace('"gradient of lm_head"', r'"<b>&\22;\FF\01]]>"')
        self.assertNotEqual(before, after)
        text.write_text(after)
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", changed)
        titles = [title.text for title in self.draw(changed).root.iter(SVG + "title")]
        self.assertTrue(any("<b>&\\\";\ufffd\\001]]>" in title for title in titles), titles)

    def test_a_picture_that_cannot_be_written_leaves_nothing(self):
        plan = self.compile("refused", tools.MODELS / "llama-tiny", *TRAIN)
        before = sorted(self.folder.iterdir())
        for path, words in ((self.folder / "none" / "x.svg", "No such file"), (self.folder, "is a directory")):
            done = tools.start("bowline-inspect", plan, "--svg", path)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--svg", done.stderr.decode())
            self.assertIn(words, done.stderr.decode())
        done = tools.start("bowline-inspect", plan, "--svg", self.folder / "x.svg", "--entry", "tran_step")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it has 'eval_step', 'init', 'train_step'", done.stderr.decode())
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_the_committed_picture_is_what_the_command_draws(self):
        flags = re.search(r"^bowline compile examples/first-model (.*(?:\\\n.*)*) -o pipeline\.plan$",
                          (COMMITTED.parent.parent.parent / "README.md").read_text(), re.MULTILINE)[1]
        plan = self.compile("pipeline", FIRST_MODEL, *flags.replace("\\\n", " ").split())
        drawn = self.draw(plan).text
        self.assertLess(len(drawn.encode()), 60000)
        self.assertEqual(drawn, COMMITTED.read_text(),
                         "docs/pictures/pipeline.svg is old: draw it again with the commands of the README, and look at it")


if __name__ == "__main__":
    tools.main()
