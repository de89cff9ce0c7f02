#include "runtime/serve/answer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bowline::serve {
namespace {

std::string Dump(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

const char* NameOf(FinishReason reason) { return reason == FinishReason::kLength ? "length" : "stop"; }

}  // namespace

std::string StopTexts::Add(const std::string& piece, bool* found) {
  *found = false;
  if (texts_.empty()) return piece;
  held_ += piece;
  size_t end = std::string::npos;
  for (const std::string& text : texts_) end = std::min(end, held_.find(text));
  if (end != std::string::npos) {
    *found = true;
    return std::exchange(held_, "").substr(0, end);
  }
  size_t certain = held_.size();
  for (const std::string& text : texts_) {
    const size_t most = std::min(text.size() - 1, held_.size());
    for (size_t length = most; length > 0; --length) {
      if (absl::EndsWith(held_, absl::string_view(text).substr(0, length))) {
        certain = std::min(certain, held_.size() - length);
        break;
      }
    }
  }
  std::string before = held_.substr(0, certain);
  held_.erase(0, certain);
  return before;
}

std::string StopTexts::Finish() { return std::exchange(held_, ""); }

Answer::Answer(std::shared_ptr<HttpExchange> exchange, const Tokenizer& tokenizer, const ApiRequest& request,
               About about)
    : exchange_(std::move(exchange)),
      decoder_(tokenizer),
      stop_(request.stop),
      about_(std::move(about)),
      stream_(request.stream),
      include_usage_(request.include_usage) {}

bool Answer::Take(int32_t token) {
  ++tokens_;
  bool found = false;
  Say(stop_.Add(decoder_.Add(token), &found));
  return !found;
}

void Answer::Say(const std::string& text) {
  if (!stream_) {
    text_ += text;
    return;
  }
  if (!began_) {
    began_ = true;
    exchange_->BeginStream("text/event-stream");
    if (about_.chat) {
      Event(Object({{"index", 0}, {"delta", {{"role", "assistant"}, {"content", ""}}}, {"finish_reason", nullptr}},
                   ".chunk"));
    }
  }
  if (text.empty()) return;
  const OrderedJson choice =
      about_.chat ? OrderedJson{{"index", 0}, {"delta", {{"content", text}}}, {"finish_reason", nullptr}}
                  : OrderedJson{{"index", 0}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  Event(Object(choice, ".chunk"));
}

void Answer::Finish(FinishReason reason, const absl::Status& status) {
  if (reason == FinishReason::kFailed || reason == FinishReason::kCancelled) {
    ApiError error;
    error.status = reason == FinishReason::kFailed ? 500 : 503;
    error.type = "server_error";
    error.message = reason == FinishReason::kFailed ? std::string(status.message()) : "the request was cancelled";
    if (!began_) return exchange_->Reply(error.status, "application/json", error.Json());
    exchange_->Write(absl::StrCat("data: ", error.Json(), "\n\n"));
    return exchange_->EndStream();
  }
  bool found = false;
  std::string rest = stop_.Add(decoder_.Finish(), &found);
  if (!found) rest += stop_.Finish();
  Say(rest);
  const OrderedJson finish = NameOf(reason);
  if (!stream_) {
    const OrderedJson choice =
        about_.chat ? OrderedJson{{"index", 0},
                                  {"message", {{"role", "assistant"}, {"content", text_}, {"refusal", nullptr}}},
                                  {"logprobs", nullptr},
                                  {"finish_reason", finish}}
                    : OrderedJson{{"index", 0}, {"text", text_}, {"logprobs", nullptr}, {"finish_reason", finish}};
    OrderedJson object = Object(choice, "");
    object["usage"] = Usage();
    return exchange_->Reply(200, "application/json", Dump(object));
  }
  Event(Object(about_.chat ? OrderedJson{{"index", 0}, {"delta", OrderedJson::object()}, {"finish_reason", finish}}
                           : OrderedJson{{"index", 0}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", finish}},
               ".chunk"));
  if (include_usage_) {
    OrderedJson last = Object(nullptr, ".chunk");
    last["choices"] = OrderedJson::array();
    last["usage"] = Usage();
    Event(last);
  }
  exchange_->Write("data: [DONE]\n\n");
  exchange_->EndStream();
}

nlohmann::ordered_json Answer::Object(nlohmann::ordered_json choice, const char* suffix) const {
  const std::string kind = about_.chat ? absl::StrCat("chat.completion", suffix) : "text_completion";
  return {{"id", about_.id},
          {"object", kind},
          {"created", about_.created},
          {"model", about_.model},
          {"choices", OrderedJson::array({std::move(choice)})}};
}

nlohmann::ordered_json Answer::Usage() const {
  return {{"prompt_tokens", about_.prompt_tokens},
          {"completion_tokens", tokens_},
          {"total_tokens", about_.prompt_tokens + tokens_}};
}

void Answer::Event(const nlohmann::ordered_json& event) {
  exchange_->Write(absl::StrCat("data: ", Dump(event), "\n\n"));
}

}  // namespace bowline::serve
