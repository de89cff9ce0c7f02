#!/usr/bin/env python3
"""Writes the model of a GGUF file as a Hugging Face directory in bf16, as transformers reads it: weights in blocks of bits
are decoded, and rounded once.

  make_hf_model.py MODEL.gguf DIR"""

import pathlib
import sys

import torch
import transformers


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    place = {"pretrained_model_name_or_path": source.parent, "gguf_file": source.name}
    decoded = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.bfloat16)
    config = decoded.config
    if hasattr(config, "quantization_config"):  # with which it could not be saved
        del config.quantization_config
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(decoded.state_dict())
    model.tie_weights()
    model.save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(**place).save_pretrained(target)


if __name__ == "__main__":
    main()
