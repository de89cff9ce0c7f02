#include "runtime/serve/answer.h"

#include <algorithm>
#include <iterator>
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
      tokenizer_(tokenizer),
      about_(std::move(about)),
      stream_(request.stream),
      include_usage_(request.include_usage),
      logprobs_(request.logprobs.has_value()) {
  for (size_t i = 0; i < static_cast<size_t>(request.n); ++i) {
    choices_.push_back({.index = i, .decoder = StreamDecoder(tokenizer), .stop = StopTexts(request.stop)});
  }
}

bool Answer::Take(size_t index, const SampledToken& sampled) {
  if (failed_) return false;
  Choice& choice = choices_[index];
  ++tokens_;
  if (logprobs_) choice.scored.push_back({choice.decoded, choice.letters, sampled});
  const std::string piece = choice.decoder.Add(sampled.token);
  choice.decoded += piece.size();
  choice.letters += CountLetters(piece);
  Say(choice, choice.stop.Add(piece, &choice.stopped));
  return !choice.stopped;
}

void Answer::Say(Choice& choice, const std::string& text) {
  choice.said += text.size();
  if (!stream_) {
    choice.text += text;
    return;
  }
  if (!std::exchange(began_, true)) exchange_->BeginStream("text/event-stream");
  if (about_.chat && !std::exchange(choice.began, true)) {
    OrderedJson first = Piece(choice, "", nullptr, nullptr);
    first["delta"] = {{"role", "assistant"}, {"content", ""}};
    Event(std::move(first));
  }
  if (!text.empty()) Event(Piece(choice, text, TakeLogprobs(choice, /*all=*/false), nullptr));
}

void Answer::Finish(size_t index, FinishReason reason, const absl::Status& status) {
  if (failed_) return;
  if (reason == FinishReason::kFailed || reason == FinishReason::kCancelled) return Fail(reason, status);
  Choice& choice = choices_[index];
  if (!choice.stopped) {
    std::string rest = choice.stop.Add(choice.decoder.Finish(), &choice.stopped);
    if (!choice.stopped) rest += choice.stop.Finish();
    Say(choice, rest);
  }
  choice.ended = reason;
  if (stream_) Event(Piece(choice, "", TakeLogprobs(choice, !choice.stopped), NameOf(reason)));
  if (++ended_ < choices_.size()) return;
  if (stream_) return EndStream();
  ReplyWhole();
}

void Answer::Fail(FinishReason reason, const absl::Status& status) {
  failed_ = true;
  ApiError error;
  error.status = reason == FinishReason::kFailed ? 500 : 503;
  error.type = "server_error";
  error.message = reason == FinishReason::kFailed ? std::string(status.message()) : "the request was cancelled";
  if (!began_) return exchange_->Reply(error.status, "application/json", error.Json());
  exchange_->Write(absl::StrCat("data: ", error.Json(), "\n\n"));
  exchange_->EndStream();
}

void Answer::EndStream() {
  if (include_usage_) Event(OrderedJson::array(), Usage());
  exchange_->Write("data: [DONE]\n\n");
  exchange_->EndStream();
}

void Answer::ReplyWhole() {
  OrderedJson choices = OrderedJson::array();
  for (Choice& choice : choices_) {
    OrderedJson whole = Piece(choice, choice.text, TakeLogprobs(choice, !choice.stopped), NameOf(*choice.ended));
    if (about_.chat) {
      whole = {{"index", choice.index},
               {"message", {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}}},
               {"logprobs", std::move(whole["logprobs"])},
               {"finish_reason", std::move(whole["finish_reason"])}};
    }
    choices.push_back(std::move(whole));
  }
  OrderedJson object = Object(std::move(choices), "");
  object["usage"] = Usage();
  exchange_->Reply(200, "application/json", Dump(object));
}

OrderedJson Answer::TakeLogprobs(Choice& choice, bool all) {
  if (!logprobs_) return nullptr;
  std::vector<ScoredToken> written;
  const auto end = all ? choice.scored.end()
                       : std::find_if(choice.scored.begin(), choice.scored.end(),
                                      [&](const ScoredToken& token) { return token.begin >= choice.said; });
  std::move(choice.scored.begin(), end, std::back_inserter(written));
  choice.scored.erase(choice.scored.begin(), end);
  if (stream_ && written.empty()) return nullptr;
  return about_.chat ? ChatLogprobs(tokenizer_, written) : CompletionLogprobs(tokenizer_, written);
}

OrderedJson Answer::Piece(Choice& choice, const std::string& text, OrderedJson logprobs, OrderedJson finish) const {
  OrderedJson piece = {{"index", choice.index}};
  if (about_.chat) {
    piece["delta"] = text.empty() ? OrderedJson::object() : OrderedJson{{"content", text}};
  } else {
    piece["text"] = text;
  }
  piece["logprobs"] = std::move(logprobs);
  piece["finish_reason"] = std::move(finish);
  return piece;
}

OrderedJson Answer::Object(OrderedJson choices, const char* suffix) const {
  const std::string kind = about_.chat ? absl::StrCat("chat.completion", suffix) : "text_completion";
  return {{"id", about_.id},
          {"object", kind},
          {"created", about_.created},
          {"model", about_.model},
          {"choices", choices.is_array() ? std::move(choices) : OrderedJson::array({std::move(choices)})}};
}

OrderedJson Answer::Usage() const {
  return {{"prompt_tokens", about_.prompt_tokens},
          {"completion_tokens", tokens_},
          {"total_tokens", about_.prompt_tokens + tokens_}};
}

void Answer::Event(OrderedJson choices, OrderedJson usage) {
  OrderedJson event = Object(std::move(choices), ".chunk");
  if (include_usage_) event["usage"] = std::move(usage);
  exchange_->Write(absl::StrCat("data: ", Dump(event), "\n\n"));
}

}  // namespace bowline::serve
