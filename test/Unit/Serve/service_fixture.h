#ifndef BOWLINE_TEST_UNIT_SERVE_SERVICE_FIXTURE_H_
#define BOWLINE_TEST_UNIT_SERVE_SERVICE_FIXTURE_H_

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "runtime/serve/batch_engine.h"
#include "runtime/serve/sequential_engine.h"
#include "runtime/serve/service.h"
#include "runtime/text/tokenizer_parts.h"
#include "test/Unit/Serve/http_client.h"

namespace bowline::serve {

using Json = nlohmann::json;

// A token for each printable letter, one for a blank, and one for the end.
inline TokenizerParts Letters() {
  TokenizerParts parts;
  parts.model = "gpt2";
  parts.pre_tokenizer = "gpt-2";
  parts.tokens = {"<|end|>", "\xc4\xa0"};
  for (char c = '!'; c <= '~'; ++c) parts.tokens.emplace_back(1, c);
  parts.types.assign(parts.tokens.size(), 1);
  parts.types[0] = 3;
  parts.end = 0;
  return parts;
}

// A server whose model says the prompt again, backwards, and then the end.
class ServiceTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> keys = {}, size_t most_waiting = 4) {
    StartWith(std::make_unique<SequentialEngine>(
                  [this](absl::Span<const int32_t> prompt, const GenerateOptions& options,
                         absl::FunctionRef<absl::Status(int32_t)> write,
                         const std::atomic<bool>& stop) { return Mirror(prompt, options, write, stop); },
                  most_waiting),
              {.api_keys = std::move(keys), .cors_origins = {}});
  }

  absl::Status Mirror(absl::Span<const int32_t> prompt, const GenerateOptions& options,
                      absl::FunctionRef<absl::Status(int32_t)> write, const std::atomic<bool>& stop) const {
    if (gate_.valid()) gate_.wait();
    if (prompt[0] == 2) return absl::InternalError("the model fails");
    std::vector<int32_t> text(prompt.rbegin(), prompt.rend());
    text.push_back(0);
    for (int64_t i = 0; i < options.max_new_tokens && !stop; ++i) {
      BOWLINE_RETURN_IF_ERROR(write(text[static_cast<size_t>(i) % text.size()]));
    }
    return absl::OkStatus();
  }

  void StartWith(std::unique_ptr<Engine> engine, ServiceOptions options = {}) {
    engine_ = std::move(engine);
    auto tokenizer = MakeTokenizer(Letters());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *std::move(tokenizer);
    model_.name = "mirror";
    model_.tokenizer = tokenizer_.get();
    model_.end_tokens = {0};
    model_.context = 40;
    model_.created = 1;
    model_.render = [](const nlohmann::ordered_json& messages) -> absl::StatusOr<std::string> {
      std::string text;
      for (const auto& message : messages)
        text += message["role"].get<std::string>()[0] + message["content"].get<std::string>();
      if (text.find('~') != std::string::npos) return absl::InvalidArgumentError("the template refuses '~'");
      return text;
    };
    service_ = std::make_unique<Service>(model_, engine_.get(), std::move(options));
    auto server = HttpServer::Listen(
        "127.0.0.1", 0, {}, [this](const std::shared_ptr<HttpExchange>& exchange) { service_->Handle(exchange); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }

  void TearDown() override {
    if (opened_.has_value()) opened_->set_value();
    server_->Stop();
    thread_.join();
    service_.reset();
    engine_.reset();
  }

  // Nothing is generated until the gate opens.
  void CloseGate() { gate_ = opened_.emplace().get_future().share(); }

  std::string Post(const std::string& path, const Json& body, const std::string& headers = "") {
    HttpClient client(server_->port());
    client.SendPost(path, body.dump(), headers + "Connection: close\r\n");
    return client.ReadAll();
  }
  static Json BodyOf(const std::string& reply) { return Json::parse(reply.substr(reply.find("\r\n\r\n") + 4)); }
  // The events of a stream, without chunks' lengths.
  static std::vector<std::string> EventsOf(const std::string& reply) {
    std::vector<std::string> events;
    for (absl::string_view line : absl::StrSplit(reply, "\r\n")) {
      if (absl::StartsWith(line, "data: ")) events.emplace_back(line.substr(6, line.size() - 8));
    }
    return events;
  }

  ServedModel model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::optional<std::promise<void>> opened_;
  std::shared_future<void> gate_;
};

}  // namespace bowline::serve

#endif  // BOWLINE_TEST_UNIT_SERVE_SERVICE_FIXTURE_H_
