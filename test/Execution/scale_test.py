#!/usr/bin/env python3
"""Plans for very large runs: their size, and the work of checking them, depend on layers and never on ranks.

Counts and bytes are compared, which no load of the machine changes; scripts/bench-scale.py measures times.
"""

import json
import re

import tools

# Wide enough for 32 ranks along tp; the other sizes are small, as they change nothing here.
CONFIG = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 128, "n_head": 32, "n_positions": 64,
          "vocab_size": 512, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
          "initializer_range": 0.02, "tie_word_embeddings": True, "bos_token_id": 256, "eos_token_id": 256}

# Llama 3.1 405B (Grattafiori et al., 2024).
LARGEST = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126,
           "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256,
           "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
           "initializer_range": 0.02, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False}

# Parts of another size are collected in other buckets, and wait for each other in other places.
SLACK = 1.25


def facts_of(report):
    return sum(proof["facts"] for proof in report["proofs"])


class Scale(tools.ToolTest):
    def compile(self, layers, mesh, sequences, *flags):
        """(bytes of the plan, the checker's report)."""
        model, plan = self.folder / f"gpt2-{layers}", self.folder / "x.plan"
        model.mkdir(exist_ok=True)
        (model / "config.json").write_text(json.dumps({**CONFIG, "n_layer": layers}))
        tools.succeed("bowline-compile", model, "--batch", sequences, "--seq", 64, "--mesh", mesh, *flags,
                      *tools.ONE_THREAD, "--no-codegen", "-o", plan)
        report = json.loads(tools.succeed("bowline-check", plan, "--json"))
        self.assertTrue(report["sound"])
        return plan.stat().st_size, report

    def test_ranks_cost_nothing(self):
        for stages, microbatches, flags in (
                (1, 1, []), (1, 1, ["--zero", "1"]), (1, 1, ["--zero", "3", "--sequence-parallel"]),
                (3, 4, ["--schedule", "1f1b", "--zero", "1"])):
            with self.subTest(stages=stages, flags=flags):
                flags = [*flags, "--microbatches", microbatches]
                small_size, small = self.compile(3, f"pp={stages},dp=2,tp=2", 2 * microbatches, *flags)
                large_size, large = self.compile(3, f"pp={stages},dp=512,tp=32", 512 * microbatches, *flags)
                self.assertEqual((small["ranks"], large["ranks"]), (4 * stages, 16384 * stages))
                self.assertLess(large_size, SLACK * small_size)
                self.assertLess(large["stored_commands"], SLACK * small["stored_commands"])
                self.assertLess(facts_of(large), SLACK * facts_of(small))

    def test_layers_cost_the_same_each(self):
        for flags in ([], ["--zero", "1"]):
            with self.subTest(flags=flags):
                sizes, facts = [], []
                for layers in (4, 8, 12):
                    size, report = self.compile(layers, "dp=2,tp=2", 2, *flags)
                    sizes.append(size)
                    facts.append(facts_of(report))
                for values in (sizes, facts):
                    self.assertAlmostEqual((values[2] - values[1]) / (values[1] - values[0]), 1, delta=0.05)

    def test_recomputation_of_many_layers_meets_a_limit(self):
        """The least recomputation is searched for; with all activations the arena would be 8.7 TiB."""
        model, plan = self.folder / "largest", self.folder / "x.plan"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(LARGEST))
        done = tools.start("bowline-compile", model, "--batch", 16, "--seq", 2048, "--recompute", "auto",
                           "--memory-limit", "6.2TiB", *tools.ONE_THREAD, "--no-codegen", "-o", plan)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        said = re.search(r"recompute auto: (\d+) operations run again.* ([0-9.]+) MiB without", done.stderr.decode())
        self.assertGreaterEqual(int(said.group(1)), 126)
        report = json.loads(tools.succeed("bowline-check", plan, "--json"))
        self.assertTrue(report["sound"])
        limit, by_kind = 6.2 * 2**40, report["roles"][0]["bytes_by_kind"]
        self.assertLessEqual(report["roles"][0]["arena_bytes"], limit)
        self.assertGreater(by_kind["Parameter"] + by_kind["State"] + float(said.group(2)) * 2**20, limit)


if __name__ == "__main__":
    tools.main()
