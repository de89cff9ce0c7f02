// bowline-run: trains with a training plan, or writes text with a plan that generates or serves.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/tools/compared_options.h"
#include "runtime/tools/restarts.h"
#include "runtime/tools/run_flags.h"
#include "runtime/tools/run_options.h"
#include "runtime/tools/run_process.h"
#include "runtime/tools/run_ranks.h"
#include "runtime/tools/spawn.h"
#include "runtime/tools/stop_signals.h"
#include "runtime/tools/tool_support.h"
#include "runtime/train/generator.h"
#include "runtime/train/trainer.h"

namespace bowline {
namespace {

constexpr char kTool[] = "bowline-run";

constexpr char kFooter[] = R"(Training:
  bowline-run x.plan --data FILE --steps N [--weights DIR] [--order sequential|shuffle] [--metrics FILE.jsonl]
              [--eval-data FILE --eval-every N] [--save DIR --save-every N] [--resume DIR]
Evaluation alone:
  bowline-run x.plan --eval-data FILE --weights DIR
Generation, with a plan of --mode serve and the model's own tokenizer:
  bowline-run s.plan --weights MODEL.gguf --prompt TEXT|- [--chat] [--max-new-tokens N] [--temperature T] [--top-k K]
              [--top-p P] [--seed N]
With a plan of --mode generate, of bytes or ids:
  bowline-run g.plan --weights DIR --prompt TEXT --max-new-tokens N [--temperature T] [--seed N]
  bowline-run g.plan --weights DIR --prompt-tokens 1,2,3 --max-new-tokens N            ids instead of text

Several ranks, when the plan is for several:
  bowline-run x.plan ...                             as threads of this process
  bowline-run x.plan --nproc 4 ...                   as processes of this machine, which it starts; logs to stderr, each
                                                     line with "[rank 3] " before it
  torchrun --no-python --nproc-per-node 4 bowline-run x.plan ...
  mpirun -n 4 bowline-run x.plan ...
  srun -n 4 bowline-run x.plan ...                   this process is one rank, by RANK and WORLD_SIZE, OMPI_COMM_WORLD_*,
                                                     PMI_* or SLURM_*; they meet at MASTER_ADDR and MASTER_PORT where set
  bowline-run x.plan --rank R --world-size N --rendezvous HOST:PORT|file:PATH ...
                                                     the same, said by hand
Rank 0 prints results, notes and metrics. Before anything runs, all processes compare the plan and their options. A rank
that dies, stops or is cut off ends the others with exit code 3 and a line that says who waits for whom, in which command
of the plan, from which source line, and which rank is the cause.

Metrics have a line per step: {"step":1,"loss":..,"grad_norm":..,"lr":..,"tokens_per_s":..,"step_ms":..}, and one per
evaluation: {"step":100,"eval_loss":..}. Where the device runs beside the host, a step also has "host_ms": how long the
host took to issue its commands, which the last line of the run says too. The first line has "run" too, the name
of the run, whose file it is: other runs refuse it. With --resume, lines of steps after the checkpoint are cut off and the
file goes on from there; the losses are those of a run that never stopped, bit for bit. A pipe needs a reader.

The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP finishes the step, saves if there is --save, and ends all ranks, and the
process that --nproc started them from, with exit code 75; a second one ends the command at once. Before training, and
where nothing is trained, the first one ends it at once with 75. A run whose last step is done ends with 0.

With --restarts N a failure, such as a rank that died, starts all ranks again, from the latest checkpoint of --save; N counts
failures in a row without a checkpoint of --save-every. A wrong input, numbers that are not finite and a signal end the run.

Exit codes: 0 done, 1 the input is wrong, 3 a fault at run time (a full disk, a rank that died), 4 a loss or a state became
infinite or NaN, 75 stopped by a signal before the last step (EX_TEMPFAIL): the same command with --resume goes on.)";

// Chooses the run that suits the plan's entries, after checking the options of that kind of run.
absl::StatusOr<RunRank> ChooseRun(const LoadedPlan& plan, const RunOptions& options, const RunModes& modes) {
  // This check comes before thousands of ranks start, each of which would print the error.
  BOWLINE_RETURN_IF_ERROR(Annotate(RequireCode(plan.plan()), absl::StrCat("'", options.plan, "'")));
  if (FindEntry(plan.plan(), fbs::EntryKind::TrainStep) != nullptr) {
    BOWLINE_RETURN_IF_ERROR(CheckTrainingOptions(options, modes));
    return RunRank(&RunTraining);
  }
  if (FindEntry(plan.plan(), fbs::EntryKind::Generate) != nullptr) {
    BOWLINE_RETURN_IF_ERROR(CheckGenerationOptions(options, modes));
    return RunRank(&RunGeneration);
  }
  if (FindEntry(plan.plan(), fbs::EntryKind::Step) != nullptr) {
    BOWLINE_RETURN_IF_ERROR(CheckStepsOptions(options, modes));
    return RunRank(&RunSteps);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", options.plan,
                                                 "' has no entry that trains, generates or serves; "
                                                 "bowline-inspect lists its entries"));
}

// The command line without some options, each of which has a value.
std::vector<std::string> Without(absl::Span<const absl::string_view> left_out, int argc, char** argv) {
  std::vector<std::string> arguments;
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    options &= argument != "--";
    const absl::string_view name = argument.substr(0, argument.find('='));
    if (!options || std::find(left_out.begin(), left_out.end(), name) == left_out.end()) {
      arguments.emplace_back(argument);
    } else if (name == argument) {
      ++i;
    }
  }
  return arguments;
}

RestartOptions RestartsOf(const RunOptions& options, int argc, char** argv) {
  RestartOptions restart = {.restarts = options.restarts,
                            .save_every = options.save_every,
                            .metrics = options.metrics,
                            .save = options.save,
                            .resumed = {},
                            .begin = "step 0"};
  if (!options.resume.empty()) {
    restart.begin = absl::StrCat("'", options.resume, "' as before");
    restart.metrics.clear();
  }
  restart.resumed = Without({"--nproc", "--restarts", "--resume", "--weights"}, argc, argv);
  restart.resumed.insert(restart.resumed.begin(), {"--resume", options.save});
  return restart;
}

// Nobody here could start the ranks of other processes again.
absl::Status CheckRestarts(const RunOptions& options) {
  if (options.nproc > 0 || options.restarts == 0) return absl::OkStatus();
  BOWLINE_ASSIGN_OR_RETURN(const Launch launch, DetectLaunch(options.launch, &ProcessEnvironment));
  if (launch.ranks == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--restarts only restarts ranks that this command starts, but ", launch.source,
                   " says that this process is rank ", launch.rank, " of ", launch.ranks,
                   "; leave out --restarts, and let the launcher start all ranks again, with --resume ", options.save,
                   " once that has a checkpoint, unless the exit code is 0, 1 or 4"));
}

// The suffix of the trace's name for a rank that is a process.
std::string TraceSuffix(int rank) { return absl::StrCat(".rank-", rank); }

// Starts the processes of the run, and checks once for mistakes that each would report.
absl::StatusOr<int> Spawn(const RunOptions& options, const RunModes& modes, int argc, char** argv) {
  std::vector<std::string> suffixes;
  for (int rank = 0; rank < options.nproc; ++rank) suffixes.push_back(TraceSuffix(rank));
  if (options.nproc == 0) suffixes.emplace_back();
  BOWLINE_RETURN_IF_ERROR(CheckRestarts(options));
  BOWLINE_RETURN_IF_ERROR(CheckOutputs(options, suffixes));
  BOWLINE_ASSIGN_OR_RETURN(const LoadedPlan plan, LoadedPlan::FromFile(options.plan));
  BOWLINE_RETURN_IF_ERROR(ChooseRun(plan, options, modes).status());
  if (options.nproc > 0) BOWLINE_RETURN_IF_ERROR(CheckSpawn(plan, options));
  const SpawnOptions spawn = {kTool, options.nproc, Without({"--nproc", "--restarts"}, argc, argv)};
  if (options.restarts > 0 && options.save_every == 0) {
    Note(options, "without --save-every nothing is saved before the last step, so each restart begins as this command");
  }
  if (options.restarts > 0) return SpawnWithRestarts(spawn, RestartsOf(options, argc, argv));
  BOWLINE_ASSIGN_OR_RETURN(const SpawnEnd end, SpawnOnce(spawn));
  return EndAs(end);
}

absl::Status WriteTrace(const RunOptions& options, const std::string& suffix) {
  if (options.trace_log == nullptr) return absl::OkStatus();
  return Annotate(options.trace_log->Write(options.trace + suffix), "--trace");
}

// Checks, before hours of training, that the file of --trace, which is written when the run is over, can be written.
absl::Status CheckTrace(const RunOptions& options, const std::string& suffix) {
  if (options.trace_log == nullptr) return absl::OkStatus();
  return Annotate(AtomicFile::Create(options.trace + suffix).status(), "--trace");
}

absl::StatusOr<RunEnd> RunOne(const RunOptions& given, const RunModes& modes, const CLI::App& app,
                              const std::optional<SpawnedRank>& spawned) {
  RunOptions options = given;
  if (!options.trace.empty()) options.trace_log = std::make_shared<ChromeTrace>();
  if (spawned.has_value()) options.on_training = [&] { Report(*spawned, SpawnReport::kTraining); };
  BOWLINE_ASSIGN_OR_RETURN(const Launch launch, DetectLaunch(options.launch, &ProcessEnvironment));
  const std::string suffix = launch.ranks > 1 ? TraceSuffix(launch.rank) : "";
  if (!spawned.has_value()) BOWLINE_RETURN_IF_ERROR(CheckOutputs(options, {suffix}));
  RunEnd end = RunEnd::kDone;
  const auto run = [&](LoadedPlan plan, const RankView& view) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(CheckTrace(options, suffix));
    BOWLINE_ASSIGN_OR_RETURN(const RunRank chosen, ChooseRun(plan, options, modes));
    BOWLINE_ASSIGN_OR_RETURN(end, chosen(std::move(plan), OptionsOfRank(options, view)));
    return absl::OkStatus();
  };
  if (launch.ranks > 1) {
    absl::Status status = RunAsProcess(options, launch, spawned.value_or(SpawnedRank()), ComparedOptions(app), run);
    if (status.ok()) status = WriteTrace(options, suffix);
    // A launcher may not say which rank printed a line.
    BOWLINE_RETURN_IF_ERROR(spawned.has_value() ? status : Annotate(status, absl::StrCat("on rank ", launch.rank)));
    return end;
  }
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(options.plan));
  BOWLINE_RETURN_IF_ERROR(CheckRankCount(plan, launch));
  BOWLINE_ASSIGN_OR_RETURN(const RunRank chosen, ChooseRun(plan, options, modes));
  // A launcher's script is the same for any number of ranks.
  if (RankCount(plan.plan()) == 1 && launch.source.empty()) {
    BOWLINE_RETURN_IF_ERROR(CheckOptionsOfOneRank(options));
  }
  BOWLINE_RETURN_IF_ERROR(CheckTrace(options, suffix));
  BOWLINE_RETURN_IF_ERROR(RunRanks(std::move(plan), options, [&](LoadedPlan own, const RankView& view) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(const RunEnd own_end, chosen(std::move(own), OptionsOfRank(options, view)));
    // The others, which are threads, have the same.
    if (view.rank == 0) end = own_end;
    return absl::OkStatus();
  }));
  BOWLINE_RETURN_IF_ERROR(WriteTrace(options, suffix));
  return end;
}

int Main(int argc, char** argv) {
  PrepareSignals(kTool);
  EndOnStopSignals();
  CLI::App app("Runs a plan: trains, evaluates, or generates text.", kTool);
  app.footer(kFooter);
  RunOptions options;
  const RunModes modes = AddRunOptions(app, options);
  int exit_code = 0;
  if (!ParseCommandLine(app, argc, argv, &exit_code)) return exit_code;
  const std::optional<SpawnedRank> spawned = FromSpawner();
  if (options.nproc > 0 || options.restarts > 0) {
    const absl::StatusOr<int> exit = Spawn(options, modes, argc, argv);
    return exit.ok() ? *exit : ReportStatus(kTool, exit.status());
  }
  const absl::StatusOr<RunEnd> end = RunOne(options, modes, app, spawned);
  if (end.ok() && *end == RunEnd::kStopped) return kStoppedExitCode;
  return ReportStatus(kTool, end.status());
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) { return bowline::Main(argc, argv); }
