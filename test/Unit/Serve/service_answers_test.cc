// Answers of a service over an engine that has logits: several answers, logarithms, defaults, pages.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "runtime/serve/logprobs.h"
#include "runtime/serve/web_pages.h"
#include "test/Unit/Serve/service_fixture.h"

namespace bowline::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The letter of a token, from '!'.
constexpr int32_t Token(char letter) { return letter - '!' + 2; }

class ServiceAnswersTest : public ServiceTest {
 protected:
  // Each token is the one before and 1 + seed % 3; its logarithm is -0.5, and those of likely tokens, letters from 'A',
  // -1, -2 and so on.
  void StartSteps(ServiceOptions options = {}, int64_t waiting = 8) {
    auto engine = BatchEngine::Create({/*blocks=*/65, /*block_tokens=*/4, /*max_context=*/40, /*max_sequences=*/2,
                                       /*buckets=*/{1, 8}},
                                      {.max_waiting = waiting},
                                      [this](const StepBatch& batch, std::vector<SampledToken>& sampled) {
                                        sampled.assign(batch.lengths.size(), {});
                                        for (size_t r = 0; r < sampled.size(); ++r) {
                                          if (batch.wants_token[r]) sampled[r] = Next(batch, r);
                                        }
                                        return fails_ ? absl::InternalError("the step fails") : absl::OkStatus();
                                      });
    ASSERT_TRUE(engine.ok()) << engine.status();
    StartWith(*std::move(engine), std::move(options));
  }

  SampledToken Next(const StepBatch& batch, size_t r) {
    const SequenceSampling& how = batch.sampling[r];
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      seen_ = how;
    }
    const int32_t last = batch.tokens[static_cast<size_t>(batch.sample[r])];
    SampledToken next = {.token = last + 1 + static_cast<int32_t>(how.seed % 3), .logprob = -0.5F};
    for (int32_t i = 0; i < how.top_logprobs; ++i) next.top.push_back({Token('A') + i, -1.0F - static_cast<float>(i)});
    return next;
  }

  SequenceSampling seen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

  std::string Get(const std::string& path, const std::string& headers = "", const std::string& method = "GET") {
    HttpClient client(server_->port());
    client.Send(absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "Connection: close\r\n\r\n"));
    return client.ReadAll();
  }

  std::atomic<bool> fails_ = false;
  std::mutex mutex_;
  SequenceSampling seen_;  // of the last step
};

TEST_F(ServiceAnswersTest, SeveralAnswersAreThoseOfTheSeedsThatFollow) {
  StartSteps();
  const Json body = {{"prompt", "abc"}, {"max_tokens", 4}, {"seed", 6}};
  Json several = body;
  several["n"] = 5;
  const Json reply = BodyOf(Post("/v1/completions", several));
  ASSERT_EQ(reply["choices"].size(), 5u);
  for (int i = 0; i < 5; ++i) {
    Json one = body;
    one["seed"] = 6 + i;
    EXPECT_EQ(reply["choices"][i]["index"], i);
    EXPECT_EQ(reply["choices"][i]["text"], BodyOf(Post("/v1/completions", one))["choices"][0]["text"]);
  }
  EXPECT_EQ(reply["choices"][0]["text"], "defg");
  EXPECT_EQ(reply["choices"][1]["text"], "egik");
  EXPECT_EQ(reply["usage"], (Json{{"prompt_tokens", 3}, {"completion_tokens", 20}, {"total_tokens", 23}}));
}

TEST_F(ServiceAnswersTest, StreamsOfSeveralAnswersSayWhoseAnEventIs) {
  StartSteps();
  const auto events = EventsOf(Post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "abc"}}}},
                                                             {"max_tokens", 4},
                                                             {"seed", 6},
                                                             {"n", 3},
                                                             {"stop", "l"},
                                                             {"stream", true},
                                                             {"stream_options", {{"include_usage", true}}}}));
  std::vector<std::string> texts(3), reasons(3);
  std::vector<int> roles(3);
  ASSERT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json event = Json::parse(events[i]), choice = event["choices"][0];
    EXPECT_TRUE(event["usage"].is_null());
    const size_t index = choice["index"];
    if (choice["delta"].contains("role")) ++roles[index];
    EXPECT_EQ(reasons[index], "") << "an event behind the end of its answer";
    texts[index] += choice["delta"].value("content", "");
    if (choice["finish_reason"].is_string()) reasons[index] = choice["finish_reason"];
  }
  EXPECT_THAT(roles, ElementsAre(1, 1, 1));
  EXPECT_THAT(texts, ElementsAre("defg", "egik", "fi"));
  EXPECT_THAT(reasons, ElementsAre("length", "length", "stop"));
  const Json last = Json::parse(events[events.size() - 2]);
  EXPECT_EQ(last["choices"], Json::array());
  EXPECT_EQ(last["usage"]["completion_tokens"], 11);
}

TEST_F(ServiceAnswersTest, AllAnswersOfARequestAreAcceptedOrNone) {
  StartSteps({}, /*waiting=*/1);
  const std::string large = Post("/v1/completions", {{"prompt", "a"}, {"n", 4}});
  EXPECT_THAT(large, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(large, HasSubstr("asks for 4 answers, but this server computes and queues at most 3"));
  EXPECT_EQ(BodyOf(Post("/v1/completions", {{"prompt", "a"}, {"n", 3}}))["choices"].size(), 3u);
  const EngineCounts counts = engine_->counts();
  EXPECT_EQ(counts.length, 3u);
  EXPECT_EQ(counts.running + counts.waiting + counts.cancelled, 0u);
}

TEST_F(ServiceAnswersTest, AFailureOfOneAnswerIsOneError) {
  StartSteps();
  fails_ = true;
  const std::string reply = Post("/v1/completions", {{"prompt", "a"}, {"n", 3}});
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ(BodyOf(reply)["error"]["message"], "the step fails");
}

TEST_F(ServiceAnswersTest, LogarithmsComeWithTheTextOfTheirTokens) {
  StartSteps();
  const Json chat = {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                     {"max_tokens", 3},
                     {"seed", 0},
                     {"logprobs", true},
                     {"top_logprobs", 2}};
  const Json entry = {
      {"token", "b"},
      {"logprob", -0.5},
      {"bytes", {98}},
      {"top_logprobs",
       {{{"token", "A"}, {"logprob", -1.0}, {"bytes", {65}}}, {{"token", "B"}, {"logprob", -2.0}, {"bytes", {66}}}}}};
  const Json whole = BodyOf(Post("/v1/chat/completions", chat))["choices"][0];
  EXPECT_EQ(whole["message"]["content"], "bcd");
  ASSERT_EQ(whole["logprobs"]["content"].size(), 3u);
  EXPECT_EQ(whole["logprobs"]["content"][0], entry);
  Json stream = chat;
  stream["stream"] = true;
  Json streamed = Json::array();
  for (const std::string& event : EventsOf(Post("/v1/chat/completions", stream))) {
    if (event == "[DONE]") continue;
    const Json choice = Json::parse(event)["choices"][0];
    if (!choice["logprobs"].is_object()) continue;
    std::string text;
    for (const Json& token : choice["logprobs"]["content"]) {
      text += token["token"];
      streamed.push_back(token);
    }
    EXPECT_EQ(text, choice["delta"].value("content", ""));
  }
  EXPECT_EQ(streamed, whole["logprobs"]["content"]);
  const Json completion =
      BodyOf(Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}, {"seed", 0}, {"logprobs", 1}}));
  EXPECT_EQ(completion["choices"][0]["logprobs"],
            (Json{{"tokens", {"b", "c"}},
                  {"token_logprobs", {-0.5, -0.5}},
                  {"top_logprobs", {{{"A", -1.0}, {"b", -0.5}}, {{"A", -1.0}, {"c", -0.5}}}},
                  {"text_offset", {0, 1}}}));
  EXPECT_EQ(BodyOf(Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}}))["choices"][0]["logprobs"], nullptr);
}

TEST_F(ServiceAnswersTest, TokensOfAStopTextHaveNoLogarithms) {
  StartSteps();
  for (const bool stream : {false, true}) {
    const std::string reply = Post(
        "/v1/completions",
        {{"prompt", "a"}, {"max_tokens", 9}, {"seed", 0}, {"logprobs", 0}, {"stop", {"de", "cx"}}, {"stream", stream}});
    Json tokens = Json::array();
    if (!stream) tokens = BodyOf(reply)["choices"][0]["logprobs"]["tokens"];
    for (const std::string& event : EventsOf(reply)) {
      if (event == "[DONE]") continue;
      const Json logprobs = Json::parse(event)["choices"][0]["logprobs"];
      if (logprobs.is_null()) continue;
      tokens.insert(tokens.end(), logprobs["tokens"].begin(), logprobs["tokens"].end());
    }
    EXPECT_EQ(tokens, (Json{"b", "c"})) << stream;
  }
}

TEST(LogprobsTest, PartsOfLettersAreTheirBytes) {
  TokenizerParts parts = Letters();
  // Bytes of U+00E9, as byte-level encodings write them.
  parts.tokens.insert(parts.tokens.end(), {"\xc3\x83", "\xc2\xa9"});
  parts.types.resize(parts.tokens.size(), 1);
  const auto tokenizer = MakeTokenizer(parts);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto size = static_cast<int32_t>(parts.tokens.size());
  const std::vector<ScoredToken> tokens = {{0, 0, {.token = size - 2, .logprob = -1}},
                                           {0, 0, {.token = size - 1, .logprob = -INFINITY}},
                                           {2, 1, {.token = Token('a'), .logprob = -2}}};
  const OrderedJson chat = ChatLogprobs(**tokenizer, tokens)["content"];
  EXPECT_EQ(chat[0]["token"], "bytes:\\xc3");
  EXPECT_EQ(chat[0]["bytes"], OrderedJson({0xc3}));
  EXPECT_EQ(chat[1]["logprob"], -9999.0);
  EXPECT_EQ(chat[2]["token"], "a");
  const OrderedJson completion = CompletionLogprobs(**tokenizer, tokens);
  EXPECT_EQ(completion["tokens"], OrderedJson({"bytes:\\xc3", "bytes:\\xa9", "a"}));
  EXPECT_EQ(completion["text_offset"], OrderedJson({0, 0, 1}));
  EXPECT_EQ(CountLetters("a\xc3\xa9\xe2\x82\xac"), 3u);
}

TEST_F(ServiceAnswersTest, TheModelsDefaultsApplyWhereARequestSaysNothing) {
  model_.defaults = {.do_sample = true, .temperature = 0.5, .top_p = 0.25, .top_k = 7, .max_new_tokens = 3};
  StartSteps();
  const Json messages = {{{"role", "user"}, {"content", "a"}}};
  const Json plain = BodyOf(Post("/v1/chat/completions", {{"messages", messages}, {"seed", 0}}));
  EXPECT_EQ(plain["choices"][0]["message"]["content"], "bcd");
  EXPECT_EQ(seen().temperature, 0.5F);
  EXPECT_EQ(seen().top_p, 0.25F);
  EXPECT_EQ(seen().top_k, 7);
  Post("/v1/chat/completions",
       {{"messages", messages}, {"temperature", 1}, {"top_p", 1}, {"top_k", -1}, {"max_tokens", 1}});
  EXPECT_EQ(seen().temperature, 1);
  EXPECT_EQ(seen().top_p, 1);
  EXPECT_EQ(seen().top_k, 0);
}

TEST_F(ServiceAnswersTest, AModelThatDoesNotSampleIsGreedy) {
  model_.defaults = {.do_sample = false, .temperature = 0.5};
  StartSteps();
  Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}});
  EXPECT_EQ(seen().temperature, 0);
  Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}, {"temperature", 0.75}});
  EXPECT_EQ(seen().temperature, 0.75F);
}

TEST_F(ServiceAnswersTest, PagesOfOtherOriginsMayUseTheApiWhereTheyAreNamed) {
  StartSteps({.api_keys = {}, .cors_origins = {"https://a.example"}});
  const std::string named = "Origin: https://a.example\r\n", other = "Origin: https://b.example\r\n";
  const std::string asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
  const std::string may = Get("/v1/completions", named + asks, "OPTIONS");
  EXPECT_THAT(may, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(may, HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(may, HasSubstr("Access-Control-Allow-Headers: content-type\r\n"));
  EXPECT_THAT(Get("/v1/completions", other + asks, "OPTIONS"), StartsWith("HTTP/1.1 405 "));
  for (const bool stream : {false, true}) {
    const Json body = {{"prompt", "a"}, {"stream", stream}};
    EXPECT_THAT(Post("/v1/completions", body, named), HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
    EXPECT_THAT(Post("/v1/completions", body, other), Not(HasSubstr("Access-Control-Allow-Origin")));
  }
  // Errors, too.
  EXPECT_THAT(Post("/v1/completions", Json::object(), named), HasSubstr("Access-Control-Allow-Origin"));
}

TEST_F(ServiceAnswersTest, NoOtherOriginMayUseTheApiUnasked) {
  StartSteps();
  EXPECT_THAT(Get("/v1/models", "Origin: https://a.example\r\n"), Not(HasSubstr("Access-Control")));
}

TEST_F(ServiceAnswersTest, HasAPageThatUsesNothingElse) {
  StartSteps({.api_keys = {"secret"}, .cors_origins = {}});
  const std::string page = Get("/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none';"));
  EXPECT_THAT(page, HasSubstr(std::string(ChatPage())));
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_THAT(std::string(ChatPage()), Not(HasSubstr(outside)));
  }
}

// The file's schemas name each field that the parser knows, and no other.
TEST_F(ServiceAnswersTest, TheOpenApiFileHasTheFieldsThatAreHonoured) {
  StartSteps();
  const Json file = BodyOf(Get("/openapi.json"));
  const std::pair<const char*, RequestFields> kRequests[] = {{"ChatCompletionRequest", FieldsOfChatRequests()},
                                                             {"CompletionRequest", FieldsOfCompletionRequests()}};
  for (const auto& [name, fields] : kRequests) {
    SCOPED_TRACE(name);
    const Json& empty = file["components"]["schemas"]["Empty"]["enum"];
    EXPECT_EQ(empty, Json::parse(R"([null, "", [], {}])"));
    Json properties = file["components"]["schemas"][name]["properties"];
    const Json reference = {{"$ref", "#/components/schemas/Empty"}};
    for (const auto& [field, values] : fields.defaults) {
      const Json expected = values.empty() ? reference : Json{{"anyOf", {{{"enum", values}}, reference}}};
      EXPECT_EQ(properties[field], expected) << field;
      properties.erase(field);
    }
    std::vector<std::string> described, known = fields.honoured;
    for (const auto& [field, schema] : properties.items()) described.push_back(field);
    known.insert(known.end(), fields.ignored.begin(), fields.ignored.end());
    std::sort(known.begin(), known.end());
    EXPECT_EQ(described, known);
    EXPECT_GT(fields.honoured.size(), 10u);
  }
  std::vector<std::string> paths;
  for (const auto& [path, methods] : file["paths"].items()) paths.push_back(path);
  EXPECT_EQ(paths.size(), 10u);
  for (const std::string& path : paths) {
    const bool post = file["paths"][path].contains("post");
    EXPECT_THAT(Get(path, "", post ? "GET" : "POST"), StartsWith("HTTP/1.1 405 ")) << path;
  }
}

}  // namespace
}  // namespace bowline::serve
