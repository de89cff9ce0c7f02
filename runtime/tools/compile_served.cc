#include "runtime/tools/compile_served.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "runtime/base/available_memory.h"
#include "runtime/plan/view/mesh_view.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/tools/child_process.h"
#include "runtime/tools/find_tool.h"

namespace bowline {
namespace {

constexpr char kCompiler[] = "bowline-compile";
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kPartOfMemory = 4;

using Clock = std::chrono::steady_clock;

// The cache of keys and values of a plan for serving, without the block that holds nothing.
struct CacheSize {
  int64_t blocks = 0, block_tokens = 0;
  int64_t of_context = 0;  // blocks that one sequence needs at most
  int64_t sequences = 0;   // of a step, at most
  uint64_t block_bytes = 0;
};

CacheSize CacheSizeOf(const fbs::Plan& plan) {
  CacheSize size;
  for (const fbs::Entry* entry : *plan.entries()) {
    if (entry->kind() != fbs::EntryKind::Step || entry->sequences() == nullptr) continue;
    const fbs::Port& table = *entry->inputs()->Get(entry->sequences()->blocks());
    const auto& shape = *plan.buffers()->Get(table.buffer())->shape();
    size.blocks = int64_t{entry->sequences()->block_count()} - 1;
    size.block_tokens = entry->sequences()->block_tokens();
    size.sequences = std::max(size.sequences, shape.Get(0));
    size.of_context = shape.Get(1);
  }
  uint64_t bytes = 0;
  for (const fbs::State* state : *plan.states()) {
    if (Has(*state, fbs::StateFlag::Cache)) bytes += plan.buffers()->Get(state->buffer())->bytes();
  }
  size.block_bytes = bytes / static_cast<uint64_t>(size.blocks + 1);
  return size;
}

std::optional<int64_t> NumberOf(const std::vector<CompileFlag>& flags, absl::string_view name) {
  int64_t number = 0;
  for (const auto& [flag, value] : flags) {
    if (flag == name && absl::SimpleAtoi(value, &number)) return number;
  }
  return std::nullopt;
}

bool IsGiven(const std::vector<CompileFlag>& flags, absl::string_view name) {
  return std::any_of(flags.begin(), flags.end(), [&](const CompileFlag& flag) { return flag.first == name; });
}

// The ranks of --mesh; the compiler reports its mistakes.
uint64_t RanksOf(const std::vector<CompileFlag>& flags) {
  uint64_t ranks = 1;
  for (const auto& [flag, value] : flags) {
    if (flag != "--mesh") continue;
    for (const absl::string_view axis : absl::StrSplit(value, ',')) {
      const std::vector<absl::string_view> parts = absl::StrSplit(axis, '=');
      uint32_t size = 0;
      // Far more than any plan has, and far from an overflow.
      constexpr uint64_t kMost = uint64_t{1} << 24;
      if (absl::SimpleAtoi(parts.back(), &size) && size > 0) ranks = std::min(ranks * size, kMost);
    }
  }
  return ranks;
}

// Whether the cache has about the size that it would get with so many bytes.
bool CacheFits(const CacheSize& cache, const std::vector<CompileFlag>& flags, uint64_t bytes) {
  if (bytes == 0 || cache.block_bytes == 0) return true;
  const int64_t most = NumberOf(flags, "--max-batch").value_or(cache.sequences) * cache.of_context;
  const int64_t wanted = std::max(std::min(static_cast<int64_t>(bytes / cache.block_bytes), most), cache.of_context);
  return cache.blocks <= 2 * wanted && wanted <= 2 * cache.blocks;
}

absl::StatusOr<LoadedPlan> Load(const std::string& path) {
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(path));
  if (FindEntry(plan.plan(), fbs::EntryKind::Step) != nullptr) return plan;
  return absl::FailedPreconditionError(absl::StrCat("'", path, "' is no plan of --mode serve"));
}

std::string WithoutCompiler(const std::string& model) {
  return absl::StrCat("'", model, "' is a model, and there is no ", kCompiler,
                      " beside this program or on PATH that would make a plan of it; install the compiler, or compile "
                      "the model elsewhere with '",
                      kCompiler, " MODEL --mode serve -o s.plan' and serve that with 'bowline-serve s.plan --weights ",
                      model, "'");
}

}  // namespace

absl::StatusOr<ServedPlan> CompileServed(const std::string& model, const std::vector<CompileFlag>& flags,
                                         const std::function<void(absl::string_view)>& note) {
  const std::string compiler = FindTool(kCompiler);
  if (compiler.empty()) return absl::FailedPreconditionError(WithoutCompiler(model));
  BOWLINE_ASSIGN_OR_RETURN(const std::string name, PlanNameOf(model, flags, compiler));
  BOWLINE_ASSIGN_OR_RETURN(PlanFolder folder, PlanFolder::Open());
  if (!folder.why_temporary().empty()) note(absl::StrCat("the plan is not kept: ", folder.why_temporary()));
  const std::string path = folder.PathOf(name);
  const uint64_t available = AvailableMemory();
  const bool limits_cache = IsGiven(flags, "--kv-blocks") || IsGiven(flags, "--kv-memory");
  const uint64_t bytes = limits_cache ? 0 : available / kPartOfMemory / RanksOf(flags);
  const auto describe_cache = [&](const LoadedPlan& plan) {
    const CacheSize cache = CacheSizeOf(plan.plan());
    note(absl::StrFormat(
        "the cache of keys and values takes %d MiB of the %d MiB that are available and has room for %d tokens of all "
        "requests together; --kv-memory and --kv-blocks choose another size",
        RankCount(plan.plan()) * static_cast<uint64_t>(cache.blocks) * cache.block_bytes / kMiB, available / kMiB,
        cache.blocks * cache.block_tokens));
  };

  absl::StatusOr<LoadedPlan> kept = Load(path);
  if (kept.ok() && CacheFits(CacheSizeOf(kept->plan()), flags, bytes)) {
    folder.MarkUsed(name);
    describe_cache(*kept);
    return ServedPlan{*std::move(kept), std::move(folder)};
  }
  if (kept.ok()) {
    note("the memory that is available has changed; the plan is compiled for it");
  } else if (!absl::IsNotFound(kept.status())) {
    note(absl::StrCat("the plan that was kept is not usable and is compiled anew: ", kept.status().message()));
  }
  std::vector<std::string> arguments = {model, "--mode", "serve", "-o", path};
  for (const auto& [flag, value] : flags) arguments.insert(arguments.end(), {flag, value});
  if (bytes > 0) arguments.insert(arguments.end(), {"--kv-memory", absl::StrCat(bytes)});
  note(absl::StrCat("compiling '", model, "' ..."));
  const Clock::time_point begin = Clock::now();
  BOWLINE_RETURN_IF_ERROR(
      Annotate(RunChild(compiler, arguments), absl::StrCat("cannot compile '", model, "' into '", path, "'")));
  note(absl::StrFormat("compiled in %.1f s into '%s'", std::chrono::duration<double>(Clock::now() - begin).count(),
                       path));
  folder.Trim();
  BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, Load(path));
  describe_cache(plan);
  return ServedPlan{std::move(plan), std::move(folder)};
}

}  // namespace bowline
