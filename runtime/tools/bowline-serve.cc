// bowline-serve: answers requests of OpenAI's API with a plan for serving, or with one that generates.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/mapped_file.h"
#include "runtime/comm/agreement.h"
#include "runtime/plan/verify/semantic_verifier.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/serve/batch_engine.h"
#include "runtime/serve/chat_renderer.h"
#include "runtime/serve/http_server.h"
#include "runtime/serve/line_log.h"
#include "runtime/serve/model_files.h"
#include "runtime/serve/sequential_engine.h"
#include "runtime/serve/service.h"
#include "runtime/serve/step_group.h"
#include "runtime/serve/step_runner.h"
#include "runtime/tools/compared_options.h"
#include "runtime/tools/compile_served.h"
#include "runtime/tools/rank_options.h"
#include "runtime/tools/run_process.h"
#include "runtime/tools/run_ranks.h"
#include "runtime/tools/spawn.h"
#include "runtime/tools/tool_support.h"
#include "runtime/train/generator.h"
#include "runtime/train/weights.h"

namespace bowline {
namespace {

constexpr char kTool[] = "bowline-serve";

constexpr char kFooter[] =
    R"(A model is compiled when it is served for the first time, by the bowline-compile beside this program or on PATH:
  bowline-serve MODEL.gguf
  curl http://127.0.0.1:8000/v1/completions -d '{"prompt": "The rope", "max_tokens": 8}'
The plan is kept in the folder plans of $BOWLINE_CACHE_DIR, else $XDG_CACHE_HOME/bowline, else ~/.cache/bowline, and used
as long as model, flags, compiler and processor are the same. Or compile it first:
  bowline-compile MODEL.gguf --mode serve --max-context 2048 -o s.plan
  bowline-serve s.plan --weights MODEL.gguf

Several ranks, each with a part of every layer's weights and of the cache:
  bowline-serve MODEL.gguf --mesh tp=2               as threads of this process
  bowline-serve MODEL.gguf --mesh tp=2 --nproc 2     as processes of this machine; --nproc serves plans too
  mpirun -n 2 bowline-serve s.plan --weights MODEL.gguf
                                                     this process is one rank, as launchers say (bowline-run --help), or
                                                     --rank, --world-size and --rendezvous; rank 0 answers requests
A rank that dies, stops or is cut off ends the server with exit code 3.

Requests are computed side by side, as many as --max-batch says; others wait. A plan of --mode generate computes one
at a time, and its whole text again for each token. The first SIGINT or SIGTERM finishes accepted requests, for --drain-timeout
seconds at most; a second one ends that. Then requests are cancelled, and a second later connections are closed. The line "listening on http://HOST:PORT" on stderr says that the server is ready.

Exit codes: 0 after a signal, 1 the input is wrong, 3 a fault at run time (a port that is taken, a compiler that died).)";

struct ServeOptions : RankOptions {
  std::string weights, driver, driver_path, host = "127.0.0.1", api_key_file, name;
  std::vector<CompileFlag> compile;  // as they were given
  uint16_t port = 8000;
  std::vector<std::string> cors_origins;
  size_t most_waiting = 128;
  double drain_timeout_s = 30;
  bool log_json = false;
};

// Flags of bowline-compile, which reads their values.
constexpr std::pair<const char*, const char*> kCompileFlags[] = {
    {"--max-context", "Tokens of a request, at most: prompt and answer together [the model's, at most 8192]"},
    {"--max-batch", "Requests that are computed side by side, at most [64]"},
    {"--dtype", "Type of the computation: f32, bf16 or f16 [f32]"},
    {"--weights-dtype",
     "Weights that a GGUF file has in blocks of bits: as-stored, or the type of --dtype [as-stored]"},
    {"--kv-dtype", "Elements of the cache of keys and values: f32, bf16, f16 or int8 [f32]"},
    {"--kv-memory",
     "Bytes of that cache, as 2GiB [a quarter of the memory that is available, and no more than --max-batch needs]"},
    {"--kv-blocks", "Blocks of 16 tokens of that cache, instead of bytes"},
    {"--mesh", "Ranks that divide the model, as tp=2 [one]"},
    {"--threads", "Threads that compute, of each rank; 0: the processors of this machine [0]"}};

// From the end of the drain, for clients to take the message that their requests were cancelled.
constexpr std::chrono::seconds kLastReplyTime{1};

void Note(absl::string_view note) { absl::FPrintF(stderr, "bowline-serve: note: %s\n", note); }

// A key a line.
absl::StatusOr<std::vector<std::string>> ReadKeys(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string text(file.bytes().begin(), file.bytes().end());
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view key = absl::StripAsciiWhitespace(line);
    if (!key.empty()) keys.emplace_back(key);
  }
  if (keys.empty()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' has no key; write one a line"));
  return keys;
}

// `folder` gets that of a plan that was made.
absl::StatusOr<LoadedPlan> OpenPlan(const ServeOptions& options, std::optional<PlanFolder>& folder) {
  if (!IsModelPath(options.plan)) return LoadedPlan::FromFile(options.plan);
  BOWLINE_ASSIGN_OR_RETURN(ServedPlan served, CompileServed(options.plan, options.compile, Note));
  folder.emplace(std::move(served.folder));
  return std::move(served.plan);
}

absl::StatusOr<std::unique_ptr<Session>> OpenSession(LoadedPlan plan, const RankView& view,
                                                     const ServeOptions& options) {
  const std::string file = absl::StrCat("'", options.plan, "'");
  const bool has_steps = FindEntry(plan.plan(), fbs::EntryKind::Step) != nullptr;
  if (!has_steps && FindEntry(plan.plan(), fbs::EntryKind::Generate) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(file, " cannot serve; compile the model with --mode serve"));
  }
  if (!has_steps && view.group != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " generates with several ranks; compile the model with --mode serve"));
  }
  SessionOptions session_options;
  session_options.driver = options.driver;
  session_options.driver_path = options.driver_path;
  session_options.group = view.group;
  session_options.links = view.links;
  // Rank 0 speaks for all: they have the same commands.
  if (view.rank == 0) session_options.note = Note;
  BOWLINE_ASSIGN_OR_RETURN(auto session, Session::Create(std::move(plan), session_options));
  // Steps read no block of a cache before they wrote it: values for all blocks would take time and memory for nothing.
  if (const auto init = session->FindEntry(fbs::EntryKind::Init); init.ok() && !has_steps) {
    BOWLINE_RETURN_IF_ERROR(session->Run(*init));
  }
  // Together, so that no rank takes one for gone that reads slowly.
  BOWLINE_ASSIGN_OR_RETURN(Agreement agreement, Agreement::Create(view.group, options.timeout()));
  agreement.SetNotes(Note);
  BOWLINE_RETURN_IF_ERROR(
      agreement.AllOkAfter("loading weights", [&] { return LoadWeights(*session, options.weights).status(); }));
  BOWLINE_RETURN_IF_ERROR(session->Prepare());
  return session;
}

// Takes SIGINT and SIGTERM on a thread of its own; all threads that start later have them blocked.
class Signals {
 public:
  // From here on signals wait until Start.
  Signals() {
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set_, number);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }

  // Until Handle a signal ends the process. `seconds` lie between the calls of `first` and `last`.
  void Start(double seconds) {
    thread_ = std::thread([this, seconds] {
      int number = 0;
      while (!IsStop(number = sigwaitinfo(&set_, nullptr))) {
        if (ends_) return;
      }
      if (!Call(first_)) {
        std::signal(number, SIG_DFL);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        raise(number);
      }
      WaitForSecond(seconds);
      if (!ends_) Call(last_);
    });
  }
  // Calls `first` after the first signal, and `last` after a second one, or some time later.
  void Handle(std::function<void()> first, std::function<void()> last) {
    const std::lock_guard<std::mutex> lock(mutex_);
    first_ = std::move(first);
    last_ = std::move(last);
  }
  ~Signals() { Stop(); }

  // From here on neither is called.
  void Stop() {
    if (!thread_.joinable()) return;
    ends_ = true;
    // Anybody may send it as well, so that it says nothing alone.
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }
  // Gives signals back to the process, which has no other thread.
  void Release() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  static bool IsStop(int number) { return number == SIGINT || number == SIGTERM; }
  // Until a signal that stops, the end, or `seconds` later.
  void WaitForSecond(double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (int number = 0; !IsStop(number) && !ends_;) {
      const double left = std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count();
      if (left <= 0) return;
      timespec time;
      time.tv_sec = static_cast<time_t>(left);
      time.tv_nsec = static_cast<long>((left - static_cast<double>(time.tv_sec)) * 1e9);
      number = sigtimedwait(&set_, nullptr, &time);
    }
  }
  bool Call(const std::function<void()>& handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (handler) handler();
    return static_cast<bool>(handler);
  }
  sigset_t set_, before_;
  std::atomic<bool> ends_ = false;
  std::mutex mutex_;
  std::function<void()> first_, last_;
  std::thread thread_;
};

// Why the ranks of the plan no longer run, and the remedy.
class Broken {
 public:
  void Set(const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = why;
    if (handler_) handler_();
  }
  void Handle(std::function<void()> handler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    handler_ = std::move(handler);
    if (handler_ && !status_.ok()) handler_();
  }
  absl::Status status() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }

 private:
  std::mutex mutex_;
  absl::Status status_;
  std::function<void()> handler_;
};

// A plan as clients use it: the engine, with the sizes of the context and the vocabulary.
struct Served {
  std::unique_ptr<serve::Engine> engine;
  int64_t context = 0, vocabulary = 0;
};

absl::StatusOr<Served> ServeSteps(Session* session, serve::StepLeader* leader, const ServeOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(serve::StepRunner runner, serve::StepRunner::Create(session, leader));
  const serve::CacheShape shape = runner.shape();
  Served served = {.engine = nullptr, .context = shape.max_context, .vocabulary = runner.vocabulary()};
  BOWLINE_ASSIGN_OR_RETURN(
      served.engine,
      serve::BatchEngine::Create(shape, {.max_waiting = static_cast<int64_t>(options.most_waiting)},
                                 [runner = std::move(runner)](const serve::StepBatch& batch,
                                                              std::vector<serve::SampledToken>& sampled) mutable {
                                   return runner.Run(batch, sampled);
                                 }));
  return served;
}

absl::StatusOr<Served> ServeTexts(Session* session, const ServeOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(Generator made, Generator::Create(session));
  const auto generator = std::make_shared<Generator>(std::move(made));
  return Served{std::make_unique<serve::SequentialEngine>(
                    [generator](absl::Span<const int32_t> prompt, const GenerateOptions& generate,
                                absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop) {
                      return generator->Generate(prompt, generate, write, stop);
                    },
                    options.most_waiting),
                generator->context(), generator->vocabulary()};
}

// NaN is within all ranges.
std::string CheckNumber(const std::string& text) {
  double number = 0;
  return absl::SimpleAtod(text, &number) && !std::isnan(number) ? "" : absl::StrCat("'", text, "' is no number");
}

// Browsers send "SCHEME://HOST[:PORT]".
std::string CheckOrigin(const std::string& text) {
  const size_t host = text.find("://");
  const bool is_origin =
      host != std::string::npos && host > 0 && host + 3 < text.size() && text.find('/', host + 3) == std::string::npos;
  return is_origin || text == "*" ? "" : absl::StrCat("'", text, "' is no origin; give it as https://HOST, or '*'");
}

// Refuses options that belong to a model alone, or to a plan alone.
absl::Status CheckOptions(ServeOptions& options) {
  for (const std::string& path : {options.plan, options.weights}) {
    std::error_code error;
    if (!path.empty() && !std::filesystem::exists(path, error)) {
      return absl::NotFoundError(absl::StrCat("cannot open '", path, "': no such file or directory"));
    }
  }
  if (IsModelPath(options.plan)) {
    if (options.weights.empty()) options.weights = options.plan;
    return absl::OkStatus();
  }
  if (!options.compile.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("'", options.plan, "' is a plan, which was compiled with its own ",
                                                   options.compile.front().first, "; leave it out, or give a model"));
  }
  if (!options.weights.empty()) return absl::OkStatus();
  BOWLINE_RETURN_IF_ERROR(LoadedPlan::FromFile(options.plan).status());
  return absl::InvalidArgumentError(absl::StrCat(
      "'", options.plan, "' is a plan, which has no weights; give --weights, a GGUF file or a Hugging Face directory"));
}

// The files that a server reads beside its plan.
struct ServerFiles {
  serve::ModelFiles model;
  std::vector<std::string> keys;
};

absl::StatusOr<ServerFiles> OpenServerFiles(const ServeOptions& options) {
  ServerFiles files;
  BOWLINE_ASSIGN_OR_RETURN(files.keys, ReadKeys(options.api_key_file));
  BOWLINE_ASSIGN_OR_RETURN(files.model, serve::OpenModelFiles(options.weights));
  return files;
}

absl::Status Follow(LoadedPlan plan, const RankView& view, const ServeOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, OpenSession(std::move(plan), view, options));
  return serve::FollowSteps(*session, *view.group);
}

// Answers requests, as rank 0 of the plan.
absl::Status Answer(LoadedPlan plan, const RankView& view, const ServerFiles& server_files, const ServeOptions& options,
                    Signals& signals) {
  const serve::ModelFiles& files = server_files.model;
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, OpenSession(std::move(plan), view, options));
  const bool has_steps = FindEntry(session->plan(), fbs::EntryKind::Step) != nullptr;
  Broken broken;
  std::unique_ptr<serve::StepLeader> leader;
  if (view.group != nullptr) {
    BOWLINE_ASSIGN_OR_RETURN(
        leader, serve::StepLeader::Create(
                    *session, *view.group,
                    {.timeout = options.timeout(), .broken = [&](const absl::Status& why) { broken.Set(why); }}));
  }
  BOWLINE_ASSIGN_OR_RETURN(
      Served served, has_steps ? ServeSteps(session.get(), leader.get(), options) : ServeTexts(session.get(), options));
  serve::Engine& engine = *served.engine;
  if (files.tokenizer->vocabulary_size() > served.vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("the tokenizer has ", files.tokenizer->vocabulary_size(),
                                                   " tokens and the plan's model ", served.vocabulary,
                                                   "; give the model's own files as --weights"));
  }
  serve::ServedModel model;
  model.name = options.name.empty() ? files.name : options.name;
  model.tokenizer = files.tokenizer.get();
  model.end_tokens = files.end_tokens;
  model.defaults = files.defaults;
  if (!engine.has_logprobs() && (files.defaults.top_k.value_or(0) != 0 || files.defaults.top_p.value_or(1) != 1)) {
    absl::FPrintF(stderr,
                  "bowline-serve: note: the plan cannot follow top_k and top_p of generation_config.json; "
                  "compile the model with --mode serve\n");
  }
  model.context = served.context;
  if (!files.chat_template.empty()) {
    absl::StatusOr<serve::ChatRenderer> render = serve::MakeChatRenderer(files);
    if (render.ok()) {
      model.render = *std::move(render);
    } else {
      Note(absl::StrCat("/v1/chat/completions is refused: ", render.status().message()));
    }
  }
  model.created = static_cast<int64_t>(std::time(nullptr));

  std::optional<serve::LineLog> log;
  std::unique_ptr<serve::Service> service;
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<serve::HttpServer> server,
                           serve::HttpServer::Listen(options.host, options.port, {},
                                                     [&](const std::shared_ptr<serve::HttpExchange>& exchange) {
                                                       service->Handle(exchange);
                                                     }));
  serve::ServiceOptions service_options = {.api_keys = server_files.keys, .cors_origins = options.cors_origins};
  if (options.log_json) {
    log.emplace(STDERR_FILENO);
    service_options.log = [&log](const std::string& line) { log->Write(line); };
  }
  service = std::make_unique<serve::Service>(model, &engine, std::move(service_options));
  signals.Handle(
      [&] {
        service->SetDraining();
        engine.Drain([&] { server->Finish(); });
      },
      [&] {
        engine.CancelAll();
        server->FinishWithin(kLastReplyTime);
      });
  const bool is_v6 = options.host.find(':') != std::string::npos;
  absl::FPrintF(stderr, "listening on http://%s%s%s:%d\n", is_v6 ? "[" : "", options.host, is_v6 ? "]" : "",
                server->port());
  broken.Handle([&] {
    service->SetDraining();
    engine.CancelAll();
    // The ranks' end is told as soon as a step sees it.
    const std::chrono::duration<double> drain(options.drain_timeout_s);
    server->FinishWithin(kLastReplyTime + std::chrono::duration_cast<std::chrono::milliseconds>(drain));
  });
  server->Run();
  signals.Stop();
  broken.Handle(nullptr);
  service.reset();
  // Requests that are still computed have exchanges, which the server outlives.
  served.engine.reset();
  return broken.status();
}

// The command line of each rank that --nproc starts: the options that were given, of the plan that was made.
std::vector<std::string> ArgumentsOfRanks(const CLI::App& app, const ServeOptions& options, const std::string& plan) {
  std::vector<std::string> arguments = {plan, absl::StrCat("--weights=", options.weights)};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool of_compiler = std::any_of(std::begin(kCompileFlags), std::end(kCompileFlags),
                                         [&](const auto& flag) { return name == flag.first; });
    if (option->get_positional() || of_compiler || name == "--weights" || name == "--nproc") continue;
    for (const std::string& value : option->results()) arguments.push_back(absl::StrCat(name, "=", value));
  }
  return arguments;
}

// Serves, or starts the ranks that do.
absl::StatusOr<int> Serve(ServeOptions options, const CLI::App& app) {
  const std::optional<SpawnedRank> spawned = FromSpawner();
  Signals signals;
  BOWLINE_RETURN_IF_ERROR(CheckOptions(options));
  Launch launch;
  if (options.nproc == 0) {
    BOWLINE_ASSIGN_OR_RETURN(launch, DetectLaunch(options.launch, &ProcessEnvironment));
  }
  const auto run_process = [&](LoadedPlan plan, const RankView& view) -> absl::Status {
    if (view.rank != 0) {
      // Rank 0 has the signal as well, and ends all.
      signals.Handle([] {}, [] {});
      return Follow(std::move(plan), view, options);
    }
    BOWLINE_ASSIGN_OR_RETURN(const ServerFiles files, OpenServerFiles(options));
    return Answer(std::move(plan), view, files, options, signals);
  };
  if (launch.ranks > 1) {
    if (IsModelPath(options.plan)) {
      return absl::InvalidArgumentError(absl::StrCat(
          launch.source, " says that this process is one of ", launch.ranks, " ranks, each of which would compile '",
          options.plan, "'; compile it once with --mode serve --mesh tp=", launch.ranks, ", and serve the plan"));
    }
    signals.Start(options.drain_timeout_s);
    const absl::Status status =
        RunAsProcess(options, launch, spawned.value_or(SpawnedRank()), ComparedOptions(app), run_process);
    // A launcher may not say which rank printed a line.
    BOWLINE_RETURN_IF_ERROR(spawned.has_value() ? status : Annotate(status, absl::StrCat("on rank ", launch.rank)));
    return 0;
  }
  BOWLINE_ASSIGN_OR_RETURN(const ServerFiles files, OpenServerFiles(options));
  std::optional<PlanFolder> folder;
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, OpenPlan(options, folder));
  if (options.nproc > 0) {
    BOWLINE_RETURN_IF_ERROR(CheckSpawn(plan, options));
    signals.Release();
    return SpawnRanks(kTool, options.nproc, ArgumentsOfRanks(app, options, plan.name()));
  }
  BOWLINE_RETURN_IF_ERROR(CheckRankCount(plan, launch));
  if (RankCount(plan.plan()) == 1 && launch.source.empty()) BOWLINE_RETURN_IF_ERROR(CheckOptionsOfOneRank(options));
  signals.Start(options.drain_timeout_s);
  BOWLINE_RETURN_IF_ERROR(RunRanks(std::move(plan), options, [&](LoadedPlan own, const RankView& view) {
    return view.rank == 0 ? Answer(std::move(own), view, files, options, signals)
                          : Follow(std::move(own), view, options);
  }));
  return 0;
}

int Main(int argc, char** argv) {
  PrepareSignals(kTool);
  CLI::App app("Serves a model or a plan by OpenAI's API.", kTool);
  app.footer(kFooter);
  ServeOptions o;
  app.add_option("MODEL", o.plan,
                 "GGUF file, or Hugging Face directory; or a plan of bowline-compile --mode serve, or generate")
      ->required();
  app.add_option(
      "--weights", o.weights,
      "GGUF file, or Hugging Face directory, with the weights, the tokenizer and the chat template [MODEL, where "
      "that is no plan]");
  for (const auto& [flag, help] : kCompileFlags) {
    app.add_option_function<std::string>(
           flag, [&o, flag = flag](const std::string& value) { o.compile.emplace_back(flag, value); }, help)
        ->group("Of the plan that is made of a model");
  }
  app.add_option("--host", o.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", o.port, "Port; 0: one that is free")->capture_default_str();
  app.add_option("--api-key-file", o.api_key_file, "File with a key a line; requests need one of them");
  app.add_option("--cors-origin", o.cors_origins,
                 "Origin of pages whose scripts may use the API, as https://HOST; '*': all. May be repeated")
      ->check(CheckOrigin)
      ->allow_extra_args(false);
  app.add_option("--served-model-name", o.name, "The model's name for clients; not given: the file's");
  app.add_option("--max-queue", o.most_waiting, "Requests that may wait; further ones get the status 429")
      ->capture_default_str();
  app.add_option("--drain-timeout", o.drain_timeout_s, "Seconds that accepted requests have after a signal")
      ->check(CLI::Range(0.0, 86400.0))
      ->check(CheckNumber)
      ->capture_default_str();
  app.add_flag("--log-json", o.log_json,
               "Write a line of JSON to stderr for each request when its reply is complete, without its texts");
  AddRankOptions(app, o);
  app.add_option("--driver", o.driver, "Device driver, as in bowline run; not given: the plan's");
  app.add_option("--driver-path", o.driver_path, "Folders to look for plugins of drivers in");
  int exit_code = 0;
  if (!ParseCommandLine(app, argc, argv, &exit_code)) return exit_code;
  const absl::StatusOr<int> code = Serve(o, app);
  if (absl::IsCancelled(code.status())) {
    Note(code.status().message());
    return 0;
  }
  return code.ok() ? *code : ReportStatus(kTool, code.status());
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) { return bowline::Main(argc, argv); }
