// How far the predictions of one plan for serving are from those of another, on a text: prints a line of JSON with the
// mean and the 99.9th percentile of the KL divergence D(reference || plan) in nats, and the share of positions at which
// both find the same token likeliest.
//
//   plan-divergence --reference R.plan --reference-weights R.gguf --plan P.plan --weights P.gguf --text FILE
//
// Each plan has one step, of as many sequences as tokens (--max-batch), so that it gives the logits of all of them.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/plan/view/plan_view.h"
#include "runtime/text/gguf_tokenizer.h"
#include "runtime/train/weights.h"

namespace bowline {
namespace {

// The logits of a plan behind each token.
class Predictor {
public:
  static absl::StatusOr<Predictor> Open(const std::string &path, const std::string &weights) {
    BOWLINE_ASSIGN_OR_RETURN(LoadedPlan plan, LoadedPlan::FromFile(path));
    Predictor predictor;
    BOWLINE_ASSIGN_OR_RETURN(predictor.session_, Session::Create(std::move(plan), {}));
    BOWLINE_RETURN_IF_ERROR(LoadWeights(*predictor.session_, weights).status());
    std::vector<const fbs::Entry *> steps;
    for (const fbs::Entry *each : *predictor.session_->plan().entries()) {
      if (each->kind() == fbs::EntryKind::Step && each->sequences() != nullptr)
        steps.push_back(each);
    }
    if (steps.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' should have one step; give --buckets one number"));
    }
    const fbs::Entry &entry = *steps.front();
    predictor.entry_ = std::string(TextOf(entry.name()));
    BOWLINE_ASSIGN_OR_RETURN(const TensorRef blocks, predictor.Input("blocks"));
    BOWLINE_ASSIGN_OR_RETURN(const TensorRef logits, predictor.session_->Output(predictor.entry_, "logits"));
    predictor.rows_ = entry.bucket();
    predictor.vocabulary_ = logits.shape[1];
    predictor.listed_ = blocks.shape[1];
    predictor.context_ = blocks.shape[1] * entry.sequences()->block_tokens();
    if (blocks.shape[0] != predictor.rows_) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' should have as many sequences as tokens; give --max-batch ", predictor.rows_));
    }
    return predictor;
  }

  int64_t context() const { return context_; }
  int64_t rows() const { return rows_; }
  int64_t vocabulary() const { return vocabulary_; }

  // Computes tokens [begin, end) of a sequence, of which the cache has those before. The logits are [rows, vocabulary].
  absl::StatusOr<std::vector<float>> Run(absl::Span<const int32_t> sequence, int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(rows_);
    std::vector<int32_t> tokens(count, 0), rows(count + 1, static_cast<int32_t>(end - begin)), lengths(count, 0);
    std::vector<int32_t> blocks(count * static_cast<size_t>(listed_), 0), sample(count, 0);
    std::copy(sequence.begin() + begin, sequence.begin() + end, tokens.begin());
    rows[0] = 0;
    lengths[0] = static_cast<int32_t>(end);
    std::iota(blocks.begin(), blocks.begin() + listed_, 1);
    std::iota(sample.begin(), sample.begin() + (end - begin), 0);
    for (const auto &[port, values] :
         {std::pair{"tokens", &tokens}, std::pair{"rows", &rows}, std::pair{"lengths", &lengths},
          std::pair{"blocks", &blocks}, std::pair{"sample", &sample}}) {
      BOWLINE_ASSIGN_OR_RETURN(const TensorRef input, Input(port));
      BOWLINE_RETURN_IF_ERROR(session_->WriteAll<int32_t>(input, *values));
    }
    // No token is drawn.
    for (const char *port : {"temperature", "top_k", "top_p", "seeds", "wanted"}) {
      BOWLINE_ASSIGN_OR_RETURN(const TensorRef input, Input(port));
      BOWLINE_RETURN_IF_ERROR(session_->Write(input, std::vector<uint8_t>(input.bytes, 0)));
    }
    BOWLINE_RETURN_IF_ERROR(session_->Run(entry_));
    BOWLINE_ASSIGN_OR_RETURN(const TensorRef output, session_->Output(entry_, "logits"));
    std::vector<float> logits(count * static_cast<size_t>(vocabulary_));
    BOWLINE_RETURN_IF_ERROR(session_->ReadAll(output, absl::MakeSpan(logits)));
    return logits;
  }

private:
  absl::StatusOr<TensorRef> Input(const char *port) const { return session_->Input(entry_, port); }

  std::unique_ptr<Session> session_;
  std::string entry_;
  int64_t rows_ = 0, vocabulary_ = 0, listed_ = 0, context_ = 0;
};

// log(sum(exp(logits)))
double LogOfSum(absl::Span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(logit - most);
  return most + std::log(sum);
}

double Divergence(absl::Span<const float> reference, absl::Span<const float> other) {
  const double p_sum = LogOfSum(reference), q_sum = LogOfSum(other);
  double divergence = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double p = reference[i] - p_sum, q = other[i] - q_sum;
    divergence += std::exp(p) * (p - q);
  }
  return divergence;
}

struct Options {
  std::string reference, reference_weights, plan, weights, text;
  int64_t most = 2048;
};

absl::Status Compare(const Options &options) {
  BOWLINE_ASSIGN_OR_RETURN(Predictor reference, Predictor::Open(options.reference, options.reference_weights));
  BOWLINE_ASSIGN_OR_RETURN(Predictor other, Predictor::Open(options.plan, options.weights));
  if (reference.vocabulary() != other.vocabulary() || reference.rows() != other.rows() ||
      reference.context() != other.context()) {
    return absl::InvalidArgumentError("the plans differ in vocabulary, step or context");
  }
  BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, OpenModelTokenizer(options.reference_weights));
  BOWLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(options.text));
  const absl::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  BOWLINE_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer->Encode(text));
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.most)));
  std::vector<double> divergences;
  int64_t same = 0;
  for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(reference.context())) {
    const auto sequence = absl::MakeConstSpan(tokens).subspan(first, static_cast<size_t>(reference.context()));
    const auto length = static_cast<int64_t>(sequence.size());
    for (int64_t begin = 0; begin < length; begin += reference.rows()) {
      const int64_t end = std::min(length, begin + reference.rows());
      BOWLINE_ASSIGN_OR_RETURN(const std::vector<float> expected, reference.Run(sequence, begin, end));
      BOWLINE_ASSIGN_OR_RETURN(const std::vector<float> got, other.Run(sequence, begin, end));
      const auto width = static_cast<size_t>(reference.vocabulary());
      for (size_t i = 0; i < static_cast<size_t>(end - begin); ++i) {
        const auto p = absl::MakeConstSpan(expected).subspan(i * width, width);
        const auto q = absl::MakeConstSpan(got).subspan(i * width, width);
        divergences.push_back(Divergence(p, q));
        same += std::max_element(p.begin(), p.end()) - p.begin() == std::max_element(q.begin(), q.end()) - q.begin();
      }
    }
  }
  if (divergences.empty())
    return absl::InvalidArgumentError(absl::StrCat("'", options.text, "' has no tokens"));
  std::sort(divergences.begin(), divergences.end());
  const auto positions = static_cast<double>(divergences.size());
  const double mean = std::accumulate(divergences.begin(), divergences.end(), 0.0) / positions;
  const auto rank = static_cast<size_t>(std::ceil(0.999 * positions)) - 1;
  std::printf("{\"positions\": %zu, \"mean\": %.4g, \"p99_9\": %.4g, \"same_top\": %.5g}\n", divergences.size(), mean,
              divergences[rank], static_cast<double>(same) / positions);
  return absl::OkStatus();
}

} // namespace
} // namespace bowline

int main(int argc, char **argv) {
  bowline::Options options;
  CLI::App app("How far the predictions of a plan for serving are from those of another");
  app.add_option("--reference", options.reference)->required();
  app.add_option("--reference-weights", options.reference_weights)->required();
  app.add_option("--plan", options.plan)->required();
  app.add_option("--weights", options.weights)->required();
  app.add_option("--text", options.text)->required();
  app.add_option("--most", options.most, "Tokens of the text that are taken")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = bowline::Compare(options);
  if (status.ok())
    return 0;
  std::fprintf(stderr, "plan-divergence: error: %s\n", std::string(status.message()).c_str());
  return 1;
}
