// Any bytes as the body of each request that has one: a reply of JSON, or a stream of events that ends.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/serve/service.h"
#include "runtime/text/tokenizer_parts.h"

namespace bowline::serve {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// A token for each byte, and two of several.
std::unique_ptr<Tokenizer> MakeBytes() {
  TokenizerParts parts;
  parts.model = "gpt2";
  parts.pre_tokenizer = "gpt-2";
  parts.tokens = {"<|end|>", "\xc4\xa0", "ab"};
  for (char c = '!'; c <= '~'; ++c) parts.tokens.emplace_back(1, c);
  // Of the bytes of other letters the vocabulary has these alone.
  for (const char* letter : {"\xc3\x83", "\xc3\xa2", "\xc2\xa9", "\xc4\xac"}) parts.tokens.emplace_back(letter);
  parts.merges = {"a b"};
  parts.types.assign(parts.tokens.size(), 1);
  parts.types[0] = 3;
  parts.end = 0;
  auto tokenizer = MakeTokenizer(std::move(parts));
  Require(tokenizer.ok());
  return *std::move(tokenizer);
}

constexpr int64_t kContext = 64;

// Says each prompt backwards, then the end, on the calling thread; fails where a prompt begins with '!'.
class MirrorEngine : public Engine {
 public:
  explicit MirrorEngine(int32_t vocabulary) : vocabulary_(vocabulary) {}

  absl::StatusOr<std::vector<std::shared_ptr<Ticket>>> Submit(std::vector<Generation> generations) override {
    std::vector<std::shared_ptr<Ticket>> tickets;
    Require(!generations.empty());
    for (Generation& generation : generations) {
      Check(generation);
      tickets.push_back(std::make_shared<Ticket>(std::move(generation)));
    }
    for (const auto& ticket : tickets) Answer(ticket->generation());
    return tickets;
  }
  bool has_logprobs() const override { return true; }
  void Drain(std::function<void()> drained) override { drained(); }
  void CancelAll() override {}
  EngineCounts counts() const override { return {}; }

 private:
  // Checks the properties of a request that engines rely on.
  void Check(const Generation& generation) const {
    Require(!generation.prompt.empty() && static_cast<int64_t>(generation.prompt.size()) < kContext);
    for (const int32_t token : generation.prompt) Require(token >= 0 && token < vocabulary_);
    Require(generation.max_new_tokens >= 1 && generation.temperature >= 0 && generation.top_k >= 0);
    Require(generation.top_p > 0 && generation.top_p <= 1);
    Require(generation.top_logprobs >= 0 && generation.top_logprobs <= 20);
  }

  void Answer(const Generation& generation) const {
    if (generation.prompt[0] == 3) return generation.finish(FinishReason::kFailed, absl::InternalError("it fails"));
    int64_t made = 0;
    for (auto token = generation.prompt.rbegin(); token != generation.prompt.rend(); ++token) {
      if (made++ == generation.max_new_tokens) return generation.finish(FinishReason::kLength, absl::OkStatus());
      SampledToken sampled{*token, -0.5F};
      for (int32_t i = 0; i < generation.top_logprobs; ++i) {
        sampled.top.push_back({(*token + i) % vocabulary_, -0.5F - static_cast<float>(i)});
      }
      if (!generation.take(sampled)) break;
    }
    generation.finish(FinishReason::kStop, absl::OkStatus());
  }

  const int32_t vocabulary_;
};

// Takes the reply, and checks its form.
class Exchange : public HttpExchange {
 public:
  Exchange(std::string path, std::string body) {
    request_.method = "POST";
    request_.path = std::move(path);
    request_.body = std::move(body);
  }
  void Reply(int status, std::string content_type, std::string body, HttpHeaders headers) override {
    Require(!replied_ && !streams_ && status >= 200 && status < 600);
    Require(nlohmann::json::accept(body));
    replied_ = true;
  }
  void BeginStream(std::string content_type) override {
    Require(!replied_ && !streams_);
    streams_ = true;
  }
  void Write(std::string text) override {
    Require(streams_ && !ended_);
    written_ += text;
  }
  void EndStream() override {
    Require(streams_ && !ended_);
    ended_ = true;
  }
  // The client leaves as soon as it has its answer. Nothing is kept: `gone` may own the owner of this exchange.
  void OnDisconnect(std::function<void()> gone) override {
    if (replied_ || ended_) gone();
  }
  void OnComplete(std::function<void(int, bool)> done) override { done_ = std::move(done); }

  // A complete reply.
  void Finish() {
    Require(replied_ != streams_ && streams_ == ended_);
    for (absl::string_view event : absl::StrSplit(written_, "\n\n", absl::SkipEmpty())) {
      Require(absl::ConsumePrefix(&event, "data: "));
      Require(event == "[DONE]" || nlohmann::json::accept(event));
    }
    if (done_) std::exchange(done_, nullptr)(replied_ ? 400 : 200, streams_);
  }

 private:
  bool replied_ = false, streams_ = false, ended_ = false;
  std::string written_;
  std::function<void(int, bool)> done_;
};

// A model whose engine mirrors prompts.
class Fixture {
 public:
  Fixture() : tokenizer_(MakeBytes()), engine_(tokenizer_->vocabulary_size()) {
    model_.name = "mirror";
    model_.tokenizer = tokenizer_.get();
    model_.end_tokens = {0};
    model_.context = kContext;
    model_.created = 1;
    model_.render = [](const OrderedJson& messages) -> absl::StatusOr<std::string> {
      std::string text;
      for (const auto& message : messages) {
        text += message.at("role").get_ref<const std::string&>() + message.at("content").get_ref<const std::string&>();
      }
      if (absl::StrContains(text, '~')) return absl::InvalidArgumentError("the template refuses '~'");
      return text;
    };
    ServiceOptions options;
    options.log = [](const std::string& line) { Require(nlohmann::json::accept(line)); };
    service_ = std::make_unique<Service>(model_, &engine_, std::move(options));
  }

  void Post(const std::string& path, const std::string& body) {
    const auto exchange = std::make_shared<Exchange>(path, body);
    service_->Handle(exchange);
    // The service has it until it did all for the request.
    while (exchange.use_count() > 1) std::this_thread::yield();
    std::atomic_thread_fence(std::memory_order_acquire);
    exchange->Finish();
  }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  MirrorEngine engine_;
  ServedModel model_;
  std::unique_ptr<Service> service_;
};

}  // namespace
}  // namespace bowline::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const fixture = new bowline::serve::Fixture;
  const std::string body(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize"}) fixture->Post(path, body);
  return 0;
}
