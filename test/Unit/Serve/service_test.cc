#include "runtime/serve/service.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "test/Unit/Serve/service_fixture.h"

namespace bowline::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(ServiceTest, Completes) {
  Start();
  const std::string reply = Post("/v1/completions", {{"model", "mirror"}, {"prompt", "abc d"}});
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  const Json body = BodyOf(reply);
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "d cba");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["usage"], (Json{{"prompt_tokens", 5}, {"completion_tokens", 5}, {"total_tokens", 10}}));
}

TEST_F(ServiceTest, ChatsAndStreams) {
  Start();
  const Json messages = {{{"role", "developer"}, {"content", "be"}},
                         {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "hi"}}}}}};
  const Json body =
      BodyOf(Post("/v1/chat/completions", {{"messages", messages}, {"user", "me"}, {"top_p", 1}, {"n", 1}}));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "ihuebs");
  const auto events = EventsOf(Post("/v1/chat/completions", {{"messages", messages},
                                                             {"stream", true},
                                                             {"stream_options", {{"include_usage", true}}},
                                                             {"max_completion_tokens", 3}}));
  std::string text;
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(Json::parse(events[0])["choices"][0]["delta"]["role"], "assistant");
  for (int i = 1; i < 4; ++i) text += Json::parse(events[i])["choices"][0]["delta"]["content"].get<std::string>();
  EXPECT_EQ(text, "ihu");
  EXPECT_EQ(Json::parse(events[4])["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(Json::parse(events[5])["choices"], Json::array());
  EXPECT_EQ(Json::parse(events[5])["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events[6], "[DONE]");
}

TEST_F(ServiceTest, StopTextsEndAnAnswerAndAreNoPartOfIt) {
  Start();
  for (const auto& [stop, expected] : std::vector<std::pair<Json, std::string>>{
           {"dc", "fe"}, {Json{"xx", "c"}, "fed"}, {Json{"cbx", "ax"}, "fedcba"}, {Json{"fedcba"}, ""}}) {
    for (const bool stream : {false, true}) {
      const std::string reply = Post("/v1/completions", {{"prompt", "abcdef"}, {"stop", stop}, {"stream", stream}});
      std::string text;
      if (!stream) text = BodyOf(reply)["choices"][0]["text"];
      for (const std::string& event : EventsOf(reply)) {
        if (event != "[DONE]") text += Json::parse(event)["choices"][0]["text"].get<std::string>();
      }
      EXPECT_EQ(text, expected) << stop << stream;
    }
  }
}

TEST_F(ServiceTest, WhatIsNotHonouredIsNamed) {
  Start();
  const Json user = {{{"role", "user"}, {"content", "hi"}}};
  const struct {
    const char* path;
    Json body;
    const char *param, *says;
  } kCases[] = {
      {"/v1/chat/completions", {{"messages", user}, {"n", 129}}, "n", "from 1 to 128"},
      {"/v1/chat/completions", {{"messages", user}, {"n", 0}}, "n", "from 1 to 128"},
      {"/v1/chat/completions", {{"messages", user}, {"min_p", 0.1}}, "min_p", "this value of 'min_p'"},
      {"/v1/chat/completions", {{"messages", user}, {"logprobs", true}}, "logprobs", "this value of 'logprobs'"},
      {"/v1/chat/completions", {{"messages", user}, {"logprobs", 1}}, "logprobs", "not a boolean"},
      {"/v1/chat/completions", {{"messages", user}, {"top_logprobs", 2}}, "top_logprobs", "with 'logprobs'"},
      {"/v1/chat/completions",
       {{"messages", user}, {"logprobs", true}, {"top_logprobs", 21}},
       "top_logprobs",
       "from 0 to 20"},
      {"/v1/chat/completions",
       {{"messages", user}, {"stream", true}, {"stream_options", {{"extra", 1}}}},
       "stream_options.extra",
       "the field 'stream_options.extra'"},
      {"/v1/chat/completions", {{"messages", user}, {"grammar", "x"}}, "grammar", "the field 'grammar'"},
      {"/v1/chat/completions", {{"messages", user}, {"max_tokens", 0}}, "max_tokens", "from 1"},
      {"/v1/chat/completions", {{"messages", user}, {"max_tokens", -1}}, "max_tokens", "from 1"},
      {"/v1/chat/completions", {{"messages", user}, {"max_tokens", 1.5}}, "max_tokens", "from 1"},
      {"/v1/chat/completions", {{"messages", user}, {"seed", 1.5}}, "seed", "no whole number"},
      {"/v1/chat/completions", {{"messages", user}, {"seed", 1e300}}, "seed", "no whole number"},
      {"/v1/chat/completions", {{"messages", user}, {"n", 129.0}}, "n", "no whole number"},
      {"/v1/chat/completions", {{"messages", user}, {"n", 4294967297.0}}, "n", "no whole number"},
      {"/v1/chat/completions",
       {{"messages", user}, {"logprobs", true}, {"top_logprobs", 1e3}},
       "top_logprobs",
       "no whole number"},
      {"/v1/chat/completions", {{"messages", user}, {"temperature", 2.5}}, "temperature", "from 0 to 2"},
      {"/v1/chat/completions", {{"messages", user}, {"top_p", 0}}, "top_p", "above 0 and up to 1"},
      {"/v1/chat/completions", {{"messages", user}, {"top_k", -2}}, "top_k", "from -1"},
      {"/v1/chat/completions", {{"messages", user}, {"top_k", uint64_t{1} << 63}}, "top_k", "from -1"},
      {"/v1/chat/completions", {{"messages", user}, {"stream", 1}}, "stream", "not a boolean"},
      {"/v1/chat/completions",
       {{"messages", user}, {"stream_options", {{"include_usage", true}}}},
       "stream_options",
       "set 'stream'"},
      {"/v1/chat/completions", {{"messages", Json::array()}}, "messages", "at least one"},
      {"/v1/chat/completions", {{"messages", {{{"role", "tool"}, {"content", "x"}}}}}, "messages", "the role 'tool'"},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}},
       "messages",
       "no text"},
      {"/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "~"}}}}}, "messages", "refuses '~'"},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", "x"}, {"name", 1}}}}},
       "messages[0].name",
       "not a text"},
      {"/v1/chat/completions",
       {{"messages", {user[0], {{"role", "assistant"}, {"content", "x"}, {"tool_calls", {1}}}}}},
       "messages[1].tool_calls",
       "the field 'messages[1].tool_calls'"},
      {"/v1/chat/completions",
       {{"messages", {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", "x"}, {"cache", true}}}}}}}},
       "messages[0].content[0].cache",
       "the field 'messages[0].content[0].cache'"},
      {"/v1/chat/completions",
       {{"messages", user}, {"stream_options", {{"include_usage", 1}}}},
       "stream_options.include_usage",
       "not a boolean"},
      {"/v1/chat/completions", {{"messages", user}, {"n", {1}}}, "n", "from 1 to 128"},
      {"/v1/chat/completions",
       {{"messages", user}, {"skip_special_tokens", false}},
       "skip_special_tokens",
       "this value of 'skip_special_tokens'"},
      {"/v1/completions", {{"prompt", {"a", "b"}}}, "prompt", "one prompt"},
      {"/v1/completions", {{"prompt", {1, 96}}}, "prompt", "no token 96"},
      {"/v1/completions", {{"prompt", ""}}, "prompt", "empty"},
      {"/v1/completions", Json::object(), "prompt", "is to be"},
      {"/v1/completions", {{"prompt", std::string(41, 'a')}}, "prompt", "the prompt has more"},
      {"/tokenize", {{"prompt", "a"}, {"model", "other"}}, "model", "there is 'mirror'"},
      {"/tokenize", {{"prompt", 1}}, "prompt", "not a text"},
      {"/tokenize", {{"prompt", OrderedJson::object()}}, "prompt", "not a text"},
      {"/tokenize", {{"prompt", "a"}, {"fast", true}}, "fast", "the field 'fast'"},
      {"/v1/completions", {{"prompt", "a"}, {"stop", {"a", "b", "c", "d", "e"}}}, "stop", "more than 4"},
      {"/v1/completions", {{"prompt", "a"}, {"logprobs", 6}}, "logprobs", "from 0 to 5"},
      {"/v1/completions", {{"prompt", "a"}, {"logprobs", 3}}, "logprobs", "this value of 'logprobs'"},
      {"/v1/completions", {{"prompt", "a"}, {"model", "other"}}, "model", "there is 'mirror'"},
      {"/v1/completions", {{"prompt", "a"}, {"max_tokens", 40}}, "prompt", "asks for 40"},
      {"/v1/completions", {{"prompt", std::string(40, 'a')}}, "prompt", "the prompt has 40"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.body.dump());
    const std::string reply = Post(test.path, test.body);
    EXPECT_THAT(reply, StartsWith(std::string("HTTP/1.1 ") + (std::string(test.param) == "model" ? "404" : "400")));
    const Json error = BodyOf(reply)["error"];
    EXPECT_EQ(error["param"], test.param);
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(test.says));
    EXPECT_EQ(error["type"], "invalid_request_error");
  }
  EXPECT_EQ(BodyOf(Post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 40}}))["error"]["code"],
            "context_length_exceeded");
  HttpClient client(server_->port());
  client.SendPost("/v1/completions", "{\"prompt\": ", "Connection: close\r\n");
  EXPECT_THAT(client.ReadAll(), HasSubstr("the body: not valid JSON"));
}

TEST_F(ServiceTest, WhatIsEmptyIsAsIfItWereAbsent) {
  Start();
  const Json messages = {{{"role", "user"}, {"content", "hi"}}};
  const std::pair<std::string, Json> kRequests[] = {{"/v1/chat/completions", {{"messages", messages}}},
                                                    {"/v1/completions", {{"prompt", "hi"}}}};
  for (const auto& [path, plain] : kRequests) {
    const RequestFields fields = plain.contains("prompt") ? FieldsOfCompletionRequests() : FieldsOfChatRequests();
    const Json expected = BodyOf(Post(path, plain))["choices"];
    for (const Json& empty : {Json(), Json(""), Json::array(), Json::object()}) {
      Json body = plain;
      body["of another server"] = empty;
      for (const std::string& name : fields.honoured) {
        if (!plain.contains(name)) body[name] = empty;
      }
      for (const auto& [name, values] : fields.defaults) body[name] = empty;
      const std::string reply = Post(path, body);
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 ")) << reply;
      EXPECT_EQ(BodyOf(reply)["choices"], expected);
    }
    for (const auto& [name, values] : fields.defaults) {
      for (const Json& value : values) {
        Json body = plain;
        body[name] = value;
        EXPECT_THAT(Post(path, body), StartsWith("HTTP/1.1 200 ")) << body;
      }
    }
  }
}

// Those of OpenAI's and vLLM's references.
TEST_F(ServiceTest, DefaultsAreAccepted) {
  Start();
  const Json both = {{"frequency_penalty", 0.0},
                     {"logit_bias", nullptr},
                     {"n", 1},
                     {"presence_penalty", 0},
                     {"stop", nullptr},
                     {"stream", false},
                     {"stream_options", {{"include_usage", false}, {"include_obfuscation", false}}},
                     {"temperature", 1},
                     {"top_p", 1.0},
                     {"top_k", 0},
                     {"min_p", 0.0},
                     {"repetition_penalty", 1.0},
                     {"length_penalty", 1.0},
                     {"ignore_eos", false},
                     {"include_stop_str_in_output", false},
                     {"min_tokens", 0},
                     {"skip_special_tokens", true},
                     {"spaces_between_special_tokens", true},
                     {"stop_token_ids", Json::array()},
                     {"use_beam_search", false},
                     {"priority", 0},
                     {"prompt_logprobs", nullptr},
                     {"truncate_prompt_tokens", nullptr},
                     {"allowed_token_ids", nullptr}};
  Json chat = both;
  chat.update(Json{{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                   {"add_generation_prompt", true},
                   {"add_special_tokens", false},
                   {"continue_final_message", false},
                   {"logprobs", false},
                   {"top_logprobs", 0},
                   {"max_completion_tokens", nullptr},
                   {"modalities", {"text"}},
                   {"parallel_tool_calls", true},
                   {"reasoning_effort", "medium"},
                   {"response_format", {{"type", "text"}}},
                   {"service_tier", "auto"},
                   {"tool_choice", "none"},
                   {"verbosity", "medium"}});
  EXPECT_THAT(Post("/v1/chat/completions", chat), StartsWith("HTTP/1.1 200 "));
  Json completion = both;
  completion.update(Json{{"prompt", "hi"},
                         {"add_special_tokens", true},
                         {"best_of", 1},
                         {"echo", false},
                         {"logprobs", nullptr},
                         {"max_tokens", 16},
                         {"suffix", nullptr}});
  EXPECT_THAT(Post("/v1/completions", completion), StartsWith("HTTP/1.1 200 "));
  for (const bool obfuscates : {false, true}) {
    completion["stream"] = true;
    completion["stream_options"]["include_obfuscation"] = obfuscates;
    EXPECT_THAT(Post("/v1/completions", completion), StartsWith("HTTP/1.1 200 "));
  }
}

TEST_F(ServiceTest, MessagesHaveTheFieldsThatClientsSend) {
  Start();
  std::promise<Json> rendered;
  model_.render = [&](const nlohmann::ordered_json& messages) -> absl::StatusOr<std::string> {
    rendered.set_value(messages);
    return "ab";
  };
  const Json messages = Json::parse(R"([
    {"role": "system", "content": [{"type": "text", "text": "be", "annotations": []}], "name": ""},
    {"role": "user", "content": "a", "name": "eve"},
    {"role": "assistant", "content": "b", "refusal": null, "tool_calls": [], "annotations": [], "audio": null,
     "function_call": null, "name": null},
    {"role": "assistant", "content": null, "tool_calls": null},
    {"role": "user", "content": []}])");
  EXPECT_THAT(Post("/v1/chat/completions", {{"messages", messages}}), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(rendered.get_future().get(), Json::parse(R"([
    {"role": "system", "content": "be"}, {"role": "user", "content": "a", "name": "eve"},
    {"role": "assistant", "content": "b"}, {"role": "assistant", "content": ""}, {"role": "user", "content": ""}])"));
}

TEST_F(ServiceTest, APromptHasOneBeginToken) {
  Start();
  TokenizerParts parts = Letters();
  parts.begin = static_cast<int32_t>(parts.tokens.size());
  parts.tokens.emplace_back("<|begin|>");
  parts.types.push_back(3);
  parts.add_begin = true;
  auto tokenizer = MakeTokenizer(std::move(parts));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  model_.tokenizer = tokenizer->get();
  for (const char* prompt : {"ab", "<|begin|>ab", "<|begin|><|begin|>ab"}) {
    EXPECT_EQ(BodyOf(Post("/v1/completions", {{"prompt", prompt}}))["usage"]["prompt_tokens"], 3) << prompt;
    EXPECT_EQ(BodyOf(Post("/tokenize", {{"prompt", prompt}}))["count"], 3) << prompt;
  }
  model_.render = [](const nlohmann::ordered_json& messages) -> absl::StatusOr<std::string> {
    return "<|begin|>" + messages[0]["content"].get<std::string>();
  };
  for (const char* content : {"ab", "<|begin|>ab"}) {
    const Json messages = {{{"role", "user"}, {"content", content}}};
    EXPECT_EQ(BodyOf(Post("/v1/chat/completions", {{"messages", messages}}))["usage"]["prompt_tokens"], 3) << content;
  }
}

TEST_F(ServiceTest, KeysAreAsked) {
  Start({"secret"});
  for (const char* header : {"", "Authorization: Bearer wrong!\r\n", "Authorization: secret\r\n"}) {
    const std::string reply = Post("/v1/completions", {{"prompt", "a"}}, header);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 401 "));
    EXPECT_EQ(BodyOf(reply)["error"]["code"], "invalid_api_key");
  }
  EXPECT_THAT(Post("/v1/completions", {{"prompt", "a"}}, "Authorization: Bearer secret\r\n"),
              StartsWith("HTTP/1.1 200 "));
  HttpClient client(server_->port());
  client.SendGet("/health");
  EXPECT_THAT(client.ReadReply(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ServiceTest, AFullQueueSaysTryAgainAndCancelledRequestsLeaveNothing) {
  CloseGate();
  Start({}, 1);
  std::vector<std::unique_ptr<HttpClient>> clients;
  const auto send = [&] {
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    clients.back()->SendPost("/v1/completions", Json{{"prompt", "ab"}}.dump());
  };
  const auto until = [&](auto holds) {
    while (!holds(engine_->counts())) std::this_thread::yield();
  };
  send();
  until([](const EngineCounts& c) { return c.running == 1; });
  send();
  until([](const EngineCounts& c) { return c.waiting == 1; });
  const std::string refused = Post("/v1/completions", {{"prompt", "a"}});
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  clients.clear();  // both leave
  opened_->set_value();
  opened_.reset();
  until([](const EngineCounts& c) { return c.running + c.waiting == 0; });
  const EngineCounts counts = engine_->counts();
  EXPECT_EQ(counts.stopped + counts.cancelled, 2u);
}

TEST_F(ServiceTest, ALongTextIsReadBesideOtherReplies) {
  Start();
  std::promise<void> opened;
  model_.render = [gate = opened.get_future().share()](const nlohmann::ordered_json&) -> absl::StatusOr<std::string> {
    gate.wait();
    return "ab";
  };
  HttpClient chats(server_->port()), asks(server_->port());
  const Json messages = {{{"role", "user"}, {"content", "hi"}}};
  chats.SendPost("/v1/chat/completions", Json{{"messages", messages}}.dump(), "Connection: close\r\n");
  asks.SendGet("/health");
  EXPECT_THAT(asks.ReadReply(), HasSubstr("ok"));
  opened.set_value();
  EXPECT_EQ(BodyOf(chats.ReadAll())["choices"][0]["message"]["content"], "ba");
}

TEST_F(ServiceTest, AFailureIsTheClientsToSee) {
  Start();
  const std::string reply = Post("/v1/completions", {{"prompt", "!"}});
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_EQ(BodyOf(reply)["error"]["message"], "the model fails");
  EXPECT_EQ(BodyOf(Post("/v1/completions", {{"prompt", "ab"}}))["choices"][0]["text"], "ba");
}

TEST_F(ServiceTest, BatchesAndCountsBlocks) {
  std::promise<SequenceSampling> sampling;
  bool first = true;
  // Says the last token of each sequence again.
  auto engine = BatchEngine::Create(
      {/*blocks=*/9, /*block_tokens=*/4, /*max_context=*/40, /*max_sequences=*/2, /*buckets=*/{1, 8}}, {},
      [&](const StepBatch& batch, std::vector<SampledToken>& sampled) {
        if (std::exchange(first, false)) sampling.set_value(batch.sampling[0]);
        sampled.resize(batch.lengths.size());
        for (size_t r = 0; r < sampled.size(); ++r) {
          sampled[r].token = batch.tokens[static_cast<size_t>(batch.sample[r])];
        }
        return absl::OkStatus();
      });
  ASSERT_TRUE(engine.ok()) << engine.status();
  StartWith(*std::move(engine));
  const Json body = {{"prompt", "abcdefgh"}, {"max_tokens", 3}, {"top_k", 5.0}, {"top_p", 0.5}, {"seed", 7.0}};
  EXPECT_EQ(BodyOf(Post("/v1/completions", body))["choices"][0]["text"], "hhh");
  const SequenceSampling seen = sampling.get_future().get();
  EXPECT_EQ(seen.top_k, 5);
  EXPECT_EQ(seen.top_p, 0.5F);
  EXPECT_EQ(seen.temperature, 1);
  EXPECT_EQ(seen.seed, 7u);
  EXPECT_EQ(BodyOf(Post("/v1/completions", body))["choices"][0]["text"], "hhh");
  HttpClient client(server_->port());
  client.SendGet("/metrics");
  const std::string metrics = client.ReadReply();
  EXPECT_THAT(metrics, HasSubstr("bowline_kv_cache_usage_perc{model_name=\"mirror\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_num_preemptions_total{model_name=\"mirror\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_prefix_cache_queries_total{model_name=\"mirror\"} 16\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_prefix_cache_hits_total{model_name=\"mirror\"} 4\n"));
  // Two answers of three tokens: steps of 8, 1 and 1 rows, and of 4, 1 and 1.
  EXPECT_THAT(metrics, HasSubstr("bowline_iteration_tokens_total_bucket{model_name=\"mirror\",le=\"1\"} 4\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_iteration_tokens_total_sum{model_name=\"mirror\"} 16\n"));
  for (const char* name : {"queue_time_seconds", "prefill_time_seconds", "decode_time_seconds",
                           "inference_time_seconds", "time_per_output_token_seconds", "max_num_generation_tokens"}) {
    EXPECT_THAT(metrics, HasSubstr(absl::StrCat("bowline_request_", name, "_count{model_name=\"mirror\"} 2\n")));
  }
  EXPECT_THAT(metrics, HasSubstr("bowline_request_prompt_tokens_bucket{model_name=\"mirror\",le=\"5\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_request_prompt_tokens_bucket{model_name=\"mirror\",le=\"10\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_request_generation_tokens_sum{model_name=\"mirror\"} 6\n"));
  // The cache has 32 places, and the context 40.
  const std::string large = Post("/v1/completions", {{"prompt", std::string(30, 'a')}, {"max_tokens", 5}});
  EXPECT_THAT(large, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(large, HasSubstr("but the cache has 8"));
}

TEST_F(ServiceTest, APlanThatSamplesFromAllRefusesLimits) {
  Start();
  const std::pair<const char*, Json> kLimits[] = {{"top_k", 5}, {"top_p", 0.5}};
  for (const auto& [name, value] : kLimits) {
    const std::string reply = Post("/v1/completions", {{"prompt", "a"}, {name, value}});
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(reply, HasSubstr(absl::StrCat("this value of '", name, "'")));
  }
}

TEST_F(ServiceTest, ListsModelsAndCounts) {
  Start();
  HttpClient client(server_->port());
  client.SendGet("/v1/models");
  EXPECT_EQ(BodyOf(client.ReadReply())["data"][0]["id"], "mirror");
  client.SendGet("/v1/models/m%69rror");
  EXPECT_EQ(BodyOf(client.ReadReply())["id"], "mirror");
  client.SendGet("/v1/models/other%2Fone%");
  const std::string missing = client.ReadReply();
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(missing, HasSubstr("there is no model 'other/one%'; there is 'mirror'"));
  Post("/v1/completions", {{"prompt", "ab"}});
  client.SendGet("/metrics");
  const std::string metrics = client.ReadReply();
  EXPECT_THAT(metrics, HasSubstr("bowline_prompt_tokens_total{model_name=\"mirror\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_request_success_total{model_name=\"mirror\",finished_reason=\"stop\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("bowline_request_queue_time_seconds_count{model_name=\"mirror\"} 1\n"));
  client.SendGet("/nothing");
  EXPECT_THAT(client.ReadReply(), HasSubstr("there is no '/nothing'; there are GET /v1/models"));
  client.SendGet("/v1/completions");
  EXPECT_THAT(client.ReadReply(), HasSubstr("Allow: POST\r\n"));
  client.SendPost("/tokenize", Json{{"prompt", "ab c"}}.dump());
  EXPECT_EQ(BodyOf(client.ReadReply())["count"], 4);
  service_->SetDraining();
  client.SendGet("/ready");
  EXPECT_THAT(client.ReadReply(), StartsWith("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace bowline::serve
