// bowline-run: trains with a training plan, or writes text with a generation plan.

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/parallel.h"
#include "runtime/drivers/builtin_drivers.h"
#include "runtime/plan/semantic_verifier.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/run_ranks.h"
#include "runtime/tools/tool_support.h"
#include "runtime/train/generator.h"
#include "runtime/train/token_ports.h"
#include "runtime/train/trainer.h"

namespace bowline {

absl::StatusOr<std::unique_ptr<Session>> CreateSession(LoadedPlan plan, const RunOptions& options) {
  SessionOptions session;
  session.driver = options.driver;
  session.profile = options.profile;
  session.group = options.group;
  session.links = options.links;
  return Session::Create(std::move(plan), session);
}

namespace {

constexpr char kTool[] = "bowline-run";

constexpr char kFooter[] = R"(Training:
  bowline-run x.plan --data FILE --steps N [--weights DIR] [--order sequential|shuffle] [--metrics FILE.jsonl]
              [--eval-data FILE --eval-every N] [--save DIR --save-every N] [--resume DIR]
Evaluation alone:
  bowline-run x.plan --eval-data FILE --weights DIR
Generation:
  bowline-run g.plan --weights DIR --prompt TEXT --max-new-tokens N [--temperature T] [--seed N]

Metrics have a line per step: {"step":1,"loss":..,"grad_norm":..,"lr":..,"tokens_per_s":..,"step_ms":..}, and one per
evaluation: {"step":100,"eval_loss":..}. With --resume, lines of steps after the checkpoint are cut off and the file goes
on from there; the losses are those of a run that never stopped, bit for bit.

The first SIGINT or SIGTERM finishes the step, saves if there is --save, and ends with exit code 0; a second one ends
the command at once.

Exit codes: 0 done, 1 the input is wrong, 3 a fault at run time (a full disk, a loss that is no number).)";

// Options of the command line by what plan they are for.
struct Modes {
  std::vector<CLI::Option*> training, generation;
};

std::string CheckCount(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) && value > 0 ? "" : text + " is not a number from 1 on";
}

// The library would read -1 as a large seed.
std::string CheckSeed(const std::string& text) {
  uint64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? "" : text + " is not a number from 0 to 2^64 - 1";
}

std::string CheckTemperature(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0 ? ""
                                                                              : text + " is not a number from 0 on";
}

Modes AddOptions(CLI::App& app, RunOptions& o) {
  const CLI::Validator count(CheckCount, "N");
  const CLI::Validator temperature(CheckTemperature, "T");
  const CLI::Validator seed(CheckSeed, "N");
  app.add_option("PLAN", o.plan, "Plan that bowline-compile wrote; it says whether this trains or generates")
      ->required();
  app.add_option("--weights", o.weights,
                 "Hugging Face directory to load parameters from, or one that --save wrote to (its latest checkpoint)");
  app.add_option("--driver", o.driver, "Device driver: cpu, or null, which runs nothing")
      ->check(CLI::IsMember(BuiltinDrivers().Names()))
      ->capture_default_str();
  app.add_option("--link", o.link_texts,
                 "Emulate the link along an axis, or along all: [AXIS:]bandwidth=10GB/s,latency=5us");
  app.add_option("--timeout", o.timeout_s, "Seconds that a rank waits for another one")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--profile", o.profile, "Time every kernel (costs a little) and print a table to stderr at the end");
  app.add_flag("--quiet", o.quiet, "No progress and notes on stderr");

  Modes modes;
  const std::string training = "Training and evaluation";
  const auto train = [&](CLI::Option* option) {
    modes.training.push_back(option->group(training));
    return option;
  };
  train(app.add_option("--data", o.data, "Tokens to train on: llm.c .bin, Megatron .bin or .idx, NumPy .npy"));
  train(app.add_option("--steps", o.steps, "Train up to this step, counted from the very first of the run"))
      ->check(count);
  train(app.add_option("--order", o.order, "Order of the samples: sequential (default) or shuffle, by the plan's seed"))
      ->check(CLI::IsMember({"sequential", "shuffle"}));
  train(app.add_option("--metrics", o.metrics, "File (or pipe) for metrics as JSON lines"));
  train(app.add_option("--eval-data", o.eval_data, "Tokens to evaluate on, in whole batches in order"));
  train(app.add_option("--eval-every", o.eval_every, "Evaluate after every N steps; not given: after the last"))
      ->check(count);
  train(app.add_option("--eval-batches", o.eval_batches, "Evaluate on the first N batches; not given: on all"))
      ->check(count);
  train(app.add_option("--save", o.save, "Directory to save checkpoints into, each a Hugging Face directory"));
  train(app.add_option("--save-every", o.save_every, "Save after every N steps, and always after the last"))
      ->check(count);
  train(app.add_option("--keep", o.keep, "Keep the latest N checkpoints; not given: all"))->check(count);
  train(app.add_option("--resume", o.resume, "Go on with the latest checkpoint of a --save directory, or with one"));
  train(app.add_flag("--allow-non-finite", o.allow_non_finite, "Do not stop when the loss is infinite or NaN"));

  const std::string generation = "Generation";
  const auto generate = [&](CLI::Option* option) {
    modes.generation.push_back(option->group(generation));
    return option;
  };
  generate(app.add_option("--prompt", o.prompt, "Text to continue; each byte is a token"));
  generate(app.add_option("--max-new-tokens", o.max_new_tokens, "How many tokens to write"))->check(count);
  generate(app.add_option("--temperature", o.temperature, "Divides the logits; 0 always takes the likeliest token"))
      ->check(temperature)
      ->capture_default_str();
  generate(app.add_option("--seed", o.seed, "Of the random choices; the same seed gives the same text"))
      ->check(seed)
      ->capture_default_str();
  generate(app.add_flag("--echo", o.echo, "Print the prompt before the text"));
  return modes;
}

absl::Status RefuseOptions(const std::vector<CLI::Option*>& options, const std::string& plan, absl::string_view does) {
  std::vector<std::string> given;
  for (const CLI::Option* option : options) {
    if (option->count() > 0) given.push_back(option->get_name());
  }
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", plan, "' is a plan that ", does, "; it has no use for ", absl::StrJoin(given, ", ")));
}

absl::Status Require(bool given, absl::string_view what) {
  return given ? absl::OkStatus() : absl::InvalidArgumentError(what);
}

absl::Status CheckTraining(const RunOptions& o) {
  if (o.data.empty() && o.steps == 0 && !o.eval_data.empty()) {
    BOWLINE_RETURN_IF_ERROR(Require(o.save.empty() && o.resume.empty() && o.eval_every == 0,
                                    "--save, --resume and --eval-every belong to training; give --data and --steps"));
    return Require(!o.weights.empty(), "evaluation needs --weights DIR");
  }
  BOWLINE_RETURN_IF_ERROR(Require(!o.data.empty(), "training needs --data FILE"));
  BOWLINE_RETURN_IF_ERROR(Require(o.steps > 0, "training needs --steps N"));
  BOWLINE_RETURN_IF_ERROR(Require(o.eval_every == 0 || !o.eval_data.empty(), "--eval-every needs --eval-data FILE"));
  BOWLINE_RETURN_IF_ERROR(
      Require(o.eval_batches == 0 || !o.eval_data.empty(), "--eval-batches needs --eval-data FILE"));
  BOWLINE_RETURN_IF_ERROR(Require(o.save_every == 0 || !o.save.empty(), "--save-every needs --save DIR"));
  BOWLINE_RETURN_IF_ERROR(Require(o.keep == 0 || !o.save.empty(), "--keep needs --save DIR"));
  return Require(o.weights.empty() || o.resume.empty(),
                 "--weights begins a new run and --resume goes on with one; give one of them");
}

absl::Status CheckGeneration(const RunOptions& o) {
  BOWLINE_RETURN_IF_ERROR(Require(!o.weights.empty(), "generation needs --weights DIR"));
  BOWLINE_RETURN_IF_ERROR(Require(!o.prompt.empty(), "generation needs --prompt TEXT, which is not empty"));
  return Require(o.max_new_tokens > 0, "generation needs --max-new-tokens N");
}

absl::Status Run(const RunOptions& options, const Modes& modes) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(options.plan));
  // Before thousands of ranks start, of which each would say so.
  BOWLINE_RETURN_IF_ERROR(Annotate(RequireCode(plan.plan()), absl::StrCat("'", options.plan, "'")));
  if (HasEntry(plan.plan(), kTrainEntry)) {
    BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.generation, options.plan, "trains"));
    BOWLINE_RETURN_IF_ERROR(CheckTraining(options));
    return RunRanks(std::move(plan), options, &RunTraining);
  }
  if (HasEntry(plan.plan(), kGenerateEntry)) {
    BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.training, options.plan, "generates text"));
    BOWLINE_RETURN_IF_ERROR(CheckGeneration(options));
    return RunGeneration(std::move(plan), options);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", options.plan, "' has neither the entry '", kTrainEntry, "' nor '",
                                                 kGenerateEntry, "'; bowline-inspect lists what it has"));
}

int Main(int argc, char** argv) {
  IgnoreWriteSignals();
  CLI::App app("Runs a plan: trains, evaluates, or generates text.", kTool);
  app.footer(kFooter);
  RunOptions options;
  const Modes modes = AddOptions(app, options);
  int exit_code = 0;
  if (!ParseCommandLine(app, argc, argv, &exit_code)) return exit_code;
  return ReportStatus(kTool, Run(options, modes));
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) {
  bowline::kernels::RestartWithShortWaits(argv);
  return bowline::Main(argc, argv);
}
