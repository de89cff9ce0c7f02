#!/usr/bin/env bash
# From a Hugging Face directory to a trained model: compiles the small Llama of examples/first-model, proves the plan, trains it
# on English text, draws the loss, and prints text that the trained model wrote. `make demo` configures the release
# build first. Everything it makes is in demo/.
#
#   BOWLINE_DEMO_STEPS   training steps; the default takes about 80 seconds on two idle cores
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# 1024 tokens a step. With half the batch, twice the steps learn no more from as many tokens.
steps=${BOWLINE_DEMO_STEPS:-1200}
batch=4
seq=256
lr=3e-3
prompt='In the beginning God created the '

[[ $steps =~ ^[1-9][0-9]*$ ]] || { echo "demo: error: BOWLINE_DEMO_STEPS is '$steps'; it must be a number from 1 on" >&2; exit 1; }

tools=build/release/bin
out=demo

title() { printf '\n== %s\n' "$*"; }
# Shows a command as one would type it, then runs it.
run() {
  printf '$'
  printf ' %q' "$@"
  printf '\n'
  "$tools/$1" "${@:2}"
}

title "Build the tools"
cmake --build --preset release --target bowline-data bowline-compile bowline-check bowline-run

title "Make the text: the King James Bible, from Debian's package bible-kjv"
rm -rf "$out"
mkdir -p "$out"
# One verse a line, its reference removed.
bible -f gen1:1-rev22:21 </dev/null | sed -e 's/^[^ ]* //' >"$out/text.txt"
verses=$(wc -l <"$out/text.txt")
if [ "$verses" -lt 30000 ]; then
  echo "demo: error: 'bible -f gen1:1-rev22:21' printed $verses verses instead of 31102; reinstall bible-kjv" >&2
  exit 1
fi
# The last twentieth is held back, to evaluate on text that training never saw.
held_back=$((verses / 20))
head -n $((verses - held_back)) "$out/text.txt" >"$out/train.txt"
tail -n "$held_back" "$out/text.txt" >"$out/eval.txt"
run bowline-data tokenize "$out/train.txt" --tokenizer bytes -o "$out/train.bin"
run bowline-data tokenize "$out/eval.txt" --tokenizer bytes -o "$out/eval.bin"
run bowline-data info "$out/train.bin" --top 5

title "Compile for training, and prove the plan"
warmup=$(((steps + 9) / 10))
run bowline-compile examples/first-model --mode train --batch "$batch" --seq "$seq" --lr "$lr" --lr-schedule cosine \
  --warmup-steps "$warmup" --decay-steps "$steps" --report -o "$out/train.plan"
run bowline-check "$out/train.plan"

title "Train $steps steps of $((batch * seq)) tokens"
run bowline-run "$out/train.plan" --data "$out/train.bin" --order shuffle --steps "$steps" \
  --metrics "$out/metrics.jsonl" --eval-data "$out/eval.bin" --eval-every "$(((steps + 3) / 4))" --eval-batches 16 \
  --save "$out/checkpoints"

title "The loss: nats per byte, on $out/train.bin"
scripts/plot-loss.py "$out/metrics.jsonl"

title "Compile for generation, and let the trained model write"
run bowline-compile examples/first-model --mode generate --seq "$seq" -o "$out/generate.plan"
run bowline-check "$out/generate.plan"
# Prompt and new bytes together fill the plan's positions.
run bowline-run "$out/generate.plan" --weights "$out/checkpoints" --prompt "$prompt" \
  --max-new-tokens $((seq - ${#prompt})) --temperature 0.5 --seed 1 --echo
echo
