// bowline-data: text to token files, the contents of token files, and checkpoints of many ranks as whole ones.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/tools/tokenize_text.h"
#include "runtime/tools/tool_support.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/save_checkpoint.h"
#include "runtime/train/data/dataset.h"

namespace bowline {
namespace {

constexpr char kTool[] = "bowline-data";

struct ExportOptions {
  std::string checkpoint;
  std::string output;
  bool with_training = false;
};

struct InfoOptions {
  std::string file;
  bool json = false;
  int top = 10;
};

struct Histogram {
  std::vector<int64_t> counts;  // number of tokens, by id
  int64_t distinct = 0;
  int64_t max_id = -1;
  std::vector<std::pair<int32_t, int64_t>> most_frequent;  // (id, count), the most frequent first
};

// Reads the whole dataset once, in blocks.
absl::StatusOr<Histogram> CountTokens(const TokenDataset& dataset, int top) {
  constexpr int64_t kBlock = 1 << 20;
  Histogram histogram;
  std::vector<int32_t> block(static_cast<size_t>(std::min(kBlock, dataset.size())));
  Progress progress("reading", static_cast<uint64_t>(dataset.size()));
  for (int64_t begin = 0; begin < dataset.size(); begin += kBlock) {
    const int64_t count = std::min(kBlock, dataset.size() - begin);
    BOWLINE_RETURN_IF_ERROR(dataset.Read(begin, count, block.data()));
    const int32_t largest = *std::max_element(block.begin(), block.begin() + count);
    histogram.max_id = std::max<int64_t>(histogram.max_id, largest);
    if (static_cast<size_t>(histogram.max_id) >= histogram.counts.size()) histogram.counts.resize(histogram.max_id + 1);
    for (int64_t i = 0; i < count; ++i) ++histogram.counts[static_cast<size_t>(block[i])];
    progress.Update(static_cast<uint64_t>(begin));
  }
  for (size_t id = 0; id < histogram.counts.size(); ++id) {
    if (histogram.counts[id] == 0) continue;
    ++histogram.distinct;
    histogram.most_frequent.emplace_back(static_cast<int32_t>(id), histogram.counts[id]);
  }
  auto& ranking = histogram.most_frequent;
  const size_t kept = std::min(ranking.size(), static_cast<size_t>(top));
  std::partial_sort(
      ranking.begin(), ranking.begin() + static_cast<ptrdiff_t>(kept), ranking.end(),
      [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  ranking.resize(kept);
  return histogram;
}

std::string InfoAsJson(const TokenDataset& dataset, const Histogram& histogram) {
  nlohmann::ordered_json object;
  object["file"] = dataset.path();
  object["format"] = dataset.description();
  object["tokens"] = dataset.size();
  object["distinct"] = histogram.distinct;
  object["max_id"] = histogram.max_id;
  object["most_frequent"] = nlohmann::ordered_json::array();
  for (const auto& [id, count] : histogram.most_frequent) {
    object["most_frequent"].push_back({{"id", id}, {"count", count}});
  }
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string InfoAsText(const TokenDataset& dataset, const Histogram& histogram) {
  std::string text = absl::StrFormat("file           %s\nformat         %s\ntokens         %d\n", dataset.path(),
                                     dataset.description(), dataset.size());
  if (dataset.size() == 0) return text;
  absl::StrAppendFormat(&text, "distinct ids   %d\nlargest id     %d\nmost frequent  id, count, share\n",
                        histogram.distinct, histogram.max_id);
  for (const auto& [id, count] : histogram.most_frequent) {
    absl::StrAppendFormat(&text, "  %10d %12d  %5.2f%%\n", id, count,
                          100.0 * static_cast<double>(count) / static_cast<double>(dataset.size()));
  }
  return text;
}

absl::Status Info(const InfoOptions& options) {
  // No vocabulary has 2^24 entries; ids beyond it mean a file of another type, and would cost memory to count.
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<TokenDataset> dataset,
                           OpenTokenDataset(options.file, {.vocabulary = int64_t{1} << 24}));
  BOWLINE_RETURN_IF_ERROR(dataset->CheckIndex());
  BOWLINE_ASSIGN_OR_RETURN(const Histogram histogram, CountTokens(*dataset, options.top));
  return PrintToStdout(options.json ? InfoAsJson(*dataset, histogram) : InfoAsText(*dataset, histogram));
}

absl::Status Export(const ExportOptions& options) {
  BOWLINE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(options.checkpoint));
  return ExportCheckpoint(checkpoint, options.output, options.with_training);
}

int Main(int argc, char** argv) {
  PrepareSignals(kTool);
  CLI::App app("Makes and inspects files of training tokens; exports checkpoints.", kTool);
  app.footer("Exit codes: 0 done, 1 the input is wrong, 3 a fault at run time (a full disk).");
  app.require_subcommand(1);

  TokenizeOptions tokenize;
  CLI::App* tokenize_command = app.add_subcommand(
      "tokenize", "Turn text into a token file: llm.c (u16), or for vocabularies above 65536 .npy (i32)");
  tokenize_command->add_option("TEXT", tokenize.text, "Text file, or - for the standard input")->required();
  tokenize_command
      ->add_option(
          "--tokenizer", tokenize.tokenizer,
          "bytes: each byte is a token, its value the id (vocabulary 256); or a GGUF file, or a directory with "
          "tokenizer.json")
      ->required();
  tokenize_command->add_option("-o,--output", tokenize.output, "File to write; it appears complete or not at all")
      ->required();

  InfoOptions info;
  CLI::App* info_command =
      app.add_subcommand("info", "Format, number of tokens, and the most frequent ids of a token file");
  info_command
      ->add_option(
          "FILE", info.file,
          "llm.c .bin (u16, u32), Megatron .bin or .idx, NumPy .npy of integers, or u16:FILE or u32:FILE for raw "
          "tokens")
      ->required();
  info_command->add_flag("--json", info.json, "Print JSON");
  info_command->add_option("--top", info.top, "How many of the most frequent ids to print")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();

  ExportOptions exports;
  CLI::App* export_command = app.add_subcommand(
      "export-checkpoint", "Write a checkpoint, of however many ranks, as one Hugging Face directory");
  export_command->add_option("CHECKPOINT", exports.checkpoint, "A checkpoint, or a --save directory for its latest one")
      ->required();
  export_command->add_option("-o,--output", exports.output, "Directory to write; it appears complete or not at all")
      ->required();
  export_command->add_flag("--with-training", exports.with_training,
                           "Optimizer and data state too: a checkpoint of one rank, to resume from");

  int exit_code = 0;
  if (!ParseCommandLine(app, argc, argv, &exit_code)) return exit_code;
  if (export_command->parsed()) return ReportStatus(kTool, Export(exports));
  return ReportStatus(kTool, tokenize_command->parsed() ? TokenizeText(tokenize) : Info(info));
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) { return bowline::Main(argc, argv); }
