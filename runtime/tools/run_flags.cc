#include "runtime/tools/run_flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {
namespace {

std::string CheckCount(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) && value > 0 ? "" : text + " is not a number from 1 on";
}

std::string CheckRestarts(const std::string& text) {
  int32_t value = 0;
  return absl::SimpleAtoi(text, &value) && value >= 0 ? "" : text + " is not a number of restarts from 0 on";
}

std::string CheckTokenId(const std::string& text) {
  int32_t value = 0;
  return absl::SimpleAtoi(text, &value) && value >= 0 ? ""
                                                      : "'" + text + "' is no id of a token, a whole number from 0 on";
}

// The library would read -1 as a large seed.
std::string CheckSeed(const std::string& text) {
  uint64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? "" : text + " is not a number from 0 to 2^64 - 1";
}

std::string CheckDriver(const std::string& text) {
  const absl::StatusOr<hal::DriverChoice> choice = hal::ParseDriverChoice(text);
  return choice.ok() ? "" : std::string(choice.status().message());
}

std::string CheckTemperature(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0 ? ""
                                                                              : text + " is not a number from 0 on";
}

std::string CheckTopP(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && value > 0 && value <= 1 ? "" : text + " is not a number above 0, up to 1";
}

std::string CheckTopK(const std::string& text) {
  int32_t value = 0;
  return absl::SimpleAtoi(text, &value) && value >= 0 ? "" : text + " is not a number of tokens from 0 on";
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

}  // namespace

RunModes AddRunOptions(CLI::App& app, RunOptions& o) {
  const CLI::Validator count(CheckCount, "N");
  const CLI::Validator restarts(CheckRestarts, "N");
  const CLI::Validator temperature(CheckTemperature, "T");
  const CLI::Validator seed(CheckSeed, "N");
  const CLI::Validator id(CheckTokenId, "ID");
  const CLI::Validator driver(CheckDriver, "");
  const CLI::Validator top_p(CheckTopP, "P");
  const CLI::Validator top_k(CheckTopK, "K");
  app.add_option("PLAN", o.plan, "Plan that bowline-compile wrote; it says whether this trains, generates or serves")
      ->required();
  app.add_option(
      "--weights", o.weights,
      "Hugging Face directory or .gguf file to load parameters from, or a directory that --save wrote to (its "
      "latest checkpoint)");
  app.add_option("--driver", o.driver,
                 "Device driver, NAME or NAME:KEY=VALUE,KEY=VALUE: cpu; null, which runs nothing; or that of a plugin "
                 "libbowline_NAME.so. Not given: the one that the plan was compiled for")
      ->check(driver);
  app.add_option(
      "--driver-path", o.driver_path,
      "Folders to look for plugins in, divided by ':', before those of BOWLINE_DRIVER_PATH and the program's");
  AddRankOptions(app, o);
  app.add_option("--trace", o.trace,
                 "File for when each command of the last two runs of each entry ran, for ui.perfetto.dev: ranks are "
                 "processes, streams threads; of ranks that are processes each writes FILE.rank-R");
  app.add_flag("--profile", o.profile, "Time every kernel (costs a little) and print a table to stderr at the end")
      ->excludes("--trace");
  app.add_flag("--quiet", o.quiet, "No progress and notes on stderr");

  RunModes modes;
  const std::string training = "Training and evaluation";
  const auto train = [&](CLI::Option* option) {
    modes.training.push_back(option->group(training));
    return option;
  };
  train(app.add_option("--data", o.data,
                       "Tokens to train on: llm.c .bin, Megatron .bin or .idx, NumPy .npy, u16:FILE or u32:FILE for "
                       "raw tokens. Given several times: the files follow each other or, as --data 0.7:FILE --data "
                       "0.3:FILE, are drawn from by weight"))
      ->type_name("FILE")
      ->allow_extra_args(false);
  train(app.add_option("--steps", o.steps, "Train up to this step, counted from the very first of the run"))
      ->check(count);
  train(app.add_option("--order", o.order, "Order of the samples: sequential (default) or shuffle, by the plan's seed"))
      ->check(CLI::IsMember({"sequential", "shuffle"}));
  train(app.add_option("--metrics", o.metrics, "File (or pipe) for metrics as JSON lines"));
  train(
      app.add_option("--eval-data", o.eval_data, "Tokens to evaluate on, each sample once; may be given several times"))
      ->type_name("FILE")
      ->allow_extra_args(false);
  train(app.add_option("--eval-every", o.eval_every, "Evaluate after every N steps; not given: after the last"))
      ->check(count);
  train(app.add_option("--eval-batches", o.eval_batches, "Evaluate on the first N batches; not given: on all"))
      ->check(count);
  train(app.add_option("--save", o.save, "Directory to save checkpoints into, each a Hugging Face directory"));
  train(app.add_option("--save-every", o.save_every, "Save after every N steps, and always after the last"))
      ->check(count);
  train(
      app.add_option("--save-dtype", o.save_dtype,
                     "Type of the parameters in model.safetensors: f32, or bf16 rounded to nearest even, beside which "
                     "the optimizer's file has the f32 that --resume goes on with"))
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  train(app.add_option("--keep", o.keep, "Keep the latest N checkpoints; not given: all"))->check(count);
  train(app.add_option("--resume", o.resume, "Go on with the latest checkpoint of a --save directory, or with one"));
  train(app.add_option("--allow-changes", o.allow_changes,
                       "Settings in which a run may differ from the one that it resumes, as lr,batch: flags of the "
                       "compiler such as lr, and order, seed, batch, seq, data"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  train(
      app.add_option("--restarts", o.restarts,
                     "After a failure start all ranks of this machine again, from the latest checkpoint of --save; at "
                     "most N times in a row without a new one"))
      ->check(restarts);
  train(app.add_flag("--allow-non-finite", o.allow_non_finite,
                     "Neither stop when the loss or a state is infinite or NaN, nor leave such states unsaved"));

  const std::string generation = "Generation";
  const auto generate = [&](CLI::Option* option) {
    modes.generation.push_back(option->group(generation));
    return option;
  };
  generate(app.add_option("--prompt", o.prompt,
                          "Text to continue, or - for the standard input, with plans of --mode serve; plans of --mode "
                          "generate have it for models whose tokens are bytes"));
  generate(app.add_option("--prompt-tokens", o.prompt_tokens,
                          "Ids of tokens to continue, as 1,2,3, for models whose tokens are no bytes"))
      ->delimiter(',')
      ->check(id)
      ->allow_extra_args(false);
  generate(app.add_option("--print", o.print, "text, or tokens: ids as 1,2,3; not given: as the prompt is"))
      ->check(CLI::IsMember({"text", "tokens"}));
  generate(app.add_option("--max-new-tokens", o.max_new_tokens,
                          "How many tokens to write, at most; a plan of --mode serve has all its context if "
                          "not given"))
      ->check(count);
  generate(app.add_option("--temperature", o.temperature, "Divides the logits; 0 always takes the likeliest token"))
      ->check(temperature)
      ->capture_default_str();
  generate(app.add_option("--seed", o.seed, "Of the random choices; the same seed gives the same text"))
      ->check(seed)
      ->capture_default_str();
  generate(app.add_flag("--echo", o.echo, "Print the prompt first"));

  const std::string serving = "Generation, with plans of --mode serve alone";
  const auto step = [&](CLI::Option* option) {
    modes.steps.push_back(option->group(serving));
    return option;
  };
  step(app.add_flag("--chat", o.chat, "Put the prompt into the model's chat template, as the message of a user"));
  step(app.add_option("--top-k", o.top_k, "Choose among the K likeliest tokens; 0: among all"))
      ->check(top_k)
      ->capture_default_str();
  step(app.add_option("--top-p", o.top_p, "Choose among the likeliest tokens that have the probability P together"))
      ->check(top_p)
      ->capture_default_str();
  return modes;
}

absl::Status CheckTrainingOptions(const RunOptions& o, const RunModes& modes) {
  BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.generation, o.plan, "trains"));
  BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.steps, o.plan, "trains"));
  BOWLINE_RETURN_IF_ERROR(Require(!ComputesNothing(o) || o.save.empty(),
                                  "the driver null computes nothing that --save could keep; leave out one of them"));
  if (o.data.empty() && o.steps == 0 && !o.eval_data.empty()) {
    BOWLINE_RETURN_IF_ERROR(
        Require(o.order.empty(), "--order is that of training; evaluation takes its data in order, leave it out"));
    BOWLINE_RETURN_IF_ERROR(
        Require(o.save.empty() && o.resume.empty() && o.eval_every == 0 && o.restarts == 0,
                "--save, --resume, --restarts and --eval-every belong to training; give --data and --steps"));
    return Require(!o.weights.empty(), "evaluation needs --weights DIR");
  }
  BOWLINE_RETURN_IF_ERROR(Require(!o.data.empty(), "training needs --data FILE"));
  BOWLINE_RETURN_IF_ERROR(Require(o.steps > 0, "training needs --steps N"));
  BOWLINE_RETURN_IF_ERROR(Require(o.eval_every == 0 || !o.eval_data.empty(), "--eval-every needs --eval-data FILE"));
  BOWLINE_RETURN_IF_ERROR(
      Require(o.eval_batches == 0 || !o.eval_data.empty(), "--eval-batches needs --eval-data FILE"));
  BOWLINE_RETURN_IF_ERROR(Require(o.save_every == 0 || !o.save.empty(), "--save-every needs --save DIR"));
  BOWLINE_RETURN_IF_ERROR(Require(o.save_dtype == "f32" || !o.save.empty(), "--save-dtype needs --save DIR"));
  BOWLINE_RETURN_IF_ERROR(Require(o.keep == 0 || !o.save.empty(), "--keep needs --save DIR"));
  BOWLINE_RETURN_IF_ERROR(Require(o.allow_changes.empty() || !o.resume.empty(), "--allow-changes needs --resume DIR"));
  BOWLINE_RETURN_IF_ERROR(
      Require(o.restarts == 0 || !o.save.empty(), "--restarts goes on with the checkpoints of --save DIR; give that"));
  return Require(o.weights.empty() || o.resume.empty(),
                 "--weights begins a new run and --resume goes on with one; give one of them");
}

namespace {

// Checks the options that plans need to continue a text.
absl::Status CheckPrompt(const RunOptions& o) {
  BOWLINE_RETURN_IF_ERROR(Require(!o.weights.empty(), "generation needs --weights DIR or --weights MODEL.gguf"));
  BOWLINE_RETURN_IF_ERROR(Require(!o.prompt.empty() || !o.prompt_tokens.empty(),
                                  "generation needs --prompt TEXT or --prompt-tokens 1,2,3"));
  return Require(o.prompt.empty() || o.prompt_tokens.empty(),
                 "--prompt and --prompt-tokens exclude each other; give one of them");
}

}  // namespace

absl::Status CheckGenerationOptions(const RunOptions& o, const RunModes& modes) {
  BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.training, o.plan, "generates text"));
  BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.steps, o.plan, "generates text without a cache"));
  BOWLINE_RETURN_IF_ERROR(CheckPrompt(o));
  return Require(o.max_new_tokens > 0, "generation needs --max-new-tokens N");
}

absl::Status CheckStepsOptions(const RunOptions& o, const RunModes& modes) {
  BOWLINE_RETURN_IF_ERROR(RefuseOptions(modes.training, o.plan, "serves"));
  BOWLINE_RETURN_IF_ERROR(CheckPrompt(o));
  return Require(!o.chat || o.prompt_tokens.empty(), "--chat needs a text; give --prompt in place of --prompt-tokens");
}

}  // namespace bowline
