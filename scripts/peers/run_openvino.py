#!/usr/bin/env python3
"""Generates with OpenVINO GenAI, which reads GGUF files itself and batches prompts over a paged cache.

It reads and writes the lines of run_llama.py. Seconds to the first token are those that the package counts; the last token
is there when the call returns. Greedy, and no token ends a text.

  run_openvino.py --model FILE.gguf --threads N --context N --streams N"""

import argparse
import json
import sys
import time

import openvino_genai

BLOCK_TOKENS = 32  # of its cache on processors


def generate(pipeline, prompts, count):
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens, config.ignore_eos, config.do_sample, config.apply_chat_template = count, True, False, False
    start = time.perf_counter()
    result = pipeline.generate(prompts, config)
    last, metrics, many = time.perf_counter() - start, result.perf_metrics, len(prompts)
    return {"first_s": [metrics.get_ttft().mean / 1e3] * many, "last_s": [last] * many,
            "tokens": [metrics.get_num_generated_tokens() // many] * many,
            "prompt_tokens": [metrics.get_num_input_tokens() // many] * many, "texts": list(result.texts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    for name in ("--threads", "--context", "--streams"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.num_kv_blocks, scheduler.max_num_seqs = arguments.context // BLOCK_TOKENS, arguments.streams
    scheduler.enable_prefix_caching = False
    pipeline = openvino_genai.LLMPipeline(arguments.model, "CPU", scheduler_config=scheduler,
                                          INFERENCE_NUM_THREADS=arguments.threads)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(generate(pipeline, request["prompts"], request["tokens"])), flush=True)


if __name__ == "__main__":
    main()
