#include "runtime/serve/http_server.h"

#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "test/Unit/Serve/http_client.h"

namespace bowline::serve {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A server on a thread of its own.
class Serving {
 public:
  explicit Serving(HttpServer::Handler handler, HttpLimits limits = {}) {
    auto server = HttpServer::Listen("127.0.0.1", 0, limits, std::move(handler));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~Serving() {
    server_->Stop();
    thread_.join();
  }
  HttpServer& server() { return *server_; }
  uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

void Echo(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->Reply(200, "text/plain", request.method + " " + request.path + " " + request.body,
                  {{"X-Kind", std::string(request.header("x-kind"))}});
}

TEST(HttpServerTest, OneConnectionHasManyRequests) {
  Serving serving(Echo);
  HttpClient client(serving.port());
  client.SendPost("/a?b=c", "hello", "X-Kind: knot\r\n");
  const std::string first = client.ReadReply();
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first, HasSubstr("X-Kind: knot\r\n"));
  EXPECT_THAT(first, EndsWith("\r\n\r\nPOST /a hello"));
  client.SendGet("/b");
  EXPECT_THAT(client.ReadReply(), EndsWith("GET /b "));
  // Two at once are answered in their order.
  client.Send("GET /c HTTP/1.1\r\nHost: x\r\n\r\nGET /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadReply(), EndsWith("GET /c "));
  EXPECT_THAT(client.ReadAll(), EndsWith("GET /d "));
}

TEST(HttpServerTest, AHeadHasNoBody) {
  Serving serving(Echo);
  HttpClient client(serving.port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, StreamsAreChunks) {
  Serving serving([](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->BeginStream("text/event-stream");
    for (const char* text : {"one", "", "twentytwentytwenty"}) exchange->Write(text);
    exchange->EndStream();
  });
  HttpClient client(serving.port());
  for (int i = 0; i < 2; ++i) {
    client.SendGet("/");
    const std::string text = client.ReadTo("0\r\n\r\n");
    EXPECT_THAT(text, HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_THAT(text, EndsWith("\r\n\r\n3\r\none\r\n12\r\ntwentytwentytwenty\r\n0\r\n\r\n"));
  }
  HttpClient old(serving.port());
  old.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.ReadAll(), EndsWith("\r\n\r\nonetwentytwentytwenty"));
}

TEST(HttpServerTest, WhatIsNoRequestIsRefused) {
  HttpLimits limits;
  limits.header_bytes = 200;
  limits.body_bytes = 10;
  Serving serving(Echo, limits);
  for (const auto& [text, status] :
       {std::pair<std::string, const char*>{"nonsense\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(300, 'x') + "\r\n\r\n", "HTTP/1.1 431 "},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", "HTTP/1.1 413 "},
        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n", "HTTP/1.1 400 "},
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
        {"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\nContent-Encoding: gzip\r\n\r\nx",
         "HTTP/1.1 415 "}}) {
    HttpClient client(serving.port());
    client.Send(text);
    const std::string reply = client.ReadAll();
    EXPECT_THAT(reply, StartsWith(status)) << text;
    EXPECT_THAT(reply, HasSubstr("{\"error\":{\"message\":"));
  }
  HttpClient client(serving.port());
  client.SendGet("/still-there");
  EXPECT_THAT(client.ReadReply(), EndsWith("/still-there "));
  client.SendGet("http://x:80/as/proxies?send=it");
  EXPECT_THAT(client.ReadReply(), EndsWith("GET /as/proxies "));
}

TEST(HttpServerTest, AClientThatSendsMoreThanIsReadGetsTheReply) {
  HttpLimits limits;
  limits.body_bytes = 10;
  Serving serving(Echo, limits);
  for (const std::string header :
       {"Content-Length: 16777216\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1000000\r\n"}) {
    HttpClient client(serving.port());
    EXPECT_TRUE(client.Send("POST / HTTP/1.1\r\nHost: x\r\n" + header + std::string(16 << 20, 'x'))) << header;
    EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413 ")) << header;
  }
}

TEST(HttpServerTest, ARequestThatWasRefusedIsNotReadForEver) {
  HttpLimits limits;
  limits.body_bytes = 10;
  limits.write_time = std::chrono::milliseconds(50);
  Serving serving(Echo, limits);
  HttpClient client(serving.port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n");
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 413 "));
  client.SendUntilClosed();
}

TEST(HttpServerTest, AClientThatLeavesIsSeen) {
  std::mutex mutex;
  std::condition_variable changed;
  int gone = 0;
  std::shared_ptr<HttpExchange> kept;
  {
    Serving serving([&](std::shared_ptr<HttpExchange> exchange) {
      const std::lock_guard<std::mutex> lock(mutex);
      kept = std::move(exchange);
      kept->OnDisconnect([&] {
        const std::lock_guard<std::mutex> inner(mutex);
        ++gone;
        changed.notify_all();
      });
      kept->OnComplete([&](int status, bool complete) {
        const std::lock_guard<std::mutex> inner(mutex);
        EXPECT_FALSE(complete);
        EXPECT_EQ(status, 0);
        ++gone;
        changed.notify_all();
      });
      changed.notify_all();
    });
    HttpClient client(serving.port());
    client.SendGet("/");
    // The begin of a next request hides nothing.
    client.Send("G");
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return kept != nullptr; });
    lock.unlock();
    client.Close();
    lock.lock();
    changed.wait(lock, [&] { return gone == 2; });
    // A late reply goes nowhere.
    kept->Reply(200, "text/plain", "late");
    kept = nullptr;
  }
  EXPECT_EQ(gone, 2);
}

TEST(HttpServerTest, RequestsThatComeDuringAReplyWaitForIt) {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<HttpExchange> first;
  HttpLimits limits;
  limits.body_bytes = 10;
  Serving serving(
      [&](const std::shared_ptr<HttpExchange>& exchange) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (exchange->request().path != "/first") return exchange->Reply(200, "text/plain", exchange->request().body);
        first = exchange;
        changed.notify_all();
      },
      limits);
  HttpClient client(serving.port());
  client.SendGet("/first");
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return first != nullptr; });
  lock.unlock();
  client.Send("POST /second HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nnext");
  client.SendGet("/third", "Connection: close\r\n");
  lock.lock();
  std::exchange(first, nullptr)->Reply(200, "text/plain", "one");
  lock.unlock();
  EXPECT_THAT(client.ReadAll(), AllOf(HasSubstr("one"), HasSubstr("next")));

  // More than a request has.
  HttpClient flood(serving.port());
  flood.SendGet("/first");
  flood.SendUntilClosed();
  lock.lock();
  first = nullptr;
}

TEST(HttpServerTest, AHandlerThatDropsARequestClosesTheConnection) {
  Serving serving([](const std::shared_ptr<HttpExchange>&) {});
  HttpClient client(serving.port());
  client.SendGet("/");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(HttpServerTest, AClientThatReadsNothingHoldsNoMoreThanItsLimit) {
  HttpLimits limits;
  limits.unread_bytes = 1 << 20;
  std::mutex mutex;
  std::condition_variable changed;
  bool gone = false;
  Serving serving(
      [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->OnDisconnect([&] {
          const std::lock_guard<std::mutex> lock(mutex);
          gone = true;
          changed.notify_all();
        });
        exchange->BeginStream("text/plain");
        // More than the system keeps for a socket.
        for (int i = 0; i < 64; ++i) exchange->Write(std::string(1 << 20, 'x'));
      },
      limits);
  HttpClient client(serving.port());
  client.SendGet("/");
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return gone; });
}

TEST(HttpServerTest, AClientThatAsksMaySendItsBody) {
  HttpLimits limits;
  limits.body_bytes = 64;
  Serving serving(Echo, limits);
  HttpClient client(serving.port());
  const std::string head = "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: ";
  client.Send(head + "5\r\n\r\n");
  EXPECT_EQ(client.ReadTo("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("hello");
  EXPECT_THAT(client.ReadReply(), EndsWith("hello"));
  // A body that has come already is not waited for.
  client.Send(head + "5\r\n\r\nhello");
  EXPECT_THAT(client.ReadReply(), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("hello")));
  // One that is too long need not be sent.
  client.Send(head + "65\r\n\r\n");
  EXPECT_THAT(client.ReadReply(), StartsWith("HTTP/1.1 413 "));
}

TEST(HttpServerTest, FinishCompletesRepliesAndEndsTheRest) {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<HttpExchange> kept;
  auto listening = HttpServer::Listen("127.0.0.1", 0, {}, [&](std::shared_ptr<HttpExchange> exchange) {
    const std::lock_guard<std::mutex> lock(mutex);
    kept = std::move(exchange);
    changed.notify_all();
  });
  ASSERT_TRUE(listening.ok()) << listening.status();
  HttpServer& server = **listening;
  std::thread thread([&] { server.Run(); });
  HttpClient idle(server.port()), busy(server.port());
  busy.SendGet("/");
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return kept != nullptr; });
  }
  server.Finish();
  EXPECT_EQ(idle.ReadAll(), "");
  kept->Reply(200, "text/plain", "done");
  EXPECT_THAT(busy.ReadAll(), EndsWith("\r\n\r\ndone"));
  thread.join();
  kept = nullptr;
}

TEST(HttpServerTest, FinishWithinALimitClosesWhatIsLeft) {
  HttpLimits limits;
  limits.unread_bytes = size_t{1} << 30;
  limits.write_time = std::chrono::hours(1);
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0, left = 0;
  std::vector<std::shared_ptr<HttpExchange>> kept;
  auto listening = HttpServer::Listen("127.0.0.1", 0, limits, [&](const std::shared_ptr<HttpExchange>& exchange) {
    const std::lock_guard<std::mutex> lock(mutex);
    exchange->OnDisconnect([&] {
      const std::lock_guard<std::mutex> inner(mutex);
      ++left;
    });
    if (exchange->request().path == "/unread") {
      // More than the system keeps for a socket.
      exchange->BeginStream("text/plain");
      exchange->Write(std::string(64 << 20, 'x'));
      exchange->EndStream();
    }
    kept.push_back(exchange);
    ++asked;
    changed.notify_all();
  });
  ASSERT_TRUE(listening.ok()) << listening.status();
  HttpServer& server = **listening;
  std::thread thread([&] { server.Run(); });
  HttpClient unread(server.port()), unanswered(server.port());
  unread.SendGet("/unread");
  unanswered.SendGet("/unanswered");
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return asked == 2; });
  }
  server.Finish();
  server.FinishWithin(std::chrono::milliseconds(1));
  thread.join();
  EXPECT_EQ(unanswered.ReadAll(), "");
  EXPECT_EQ(left, 1);  // of the other the reply was complete
  kept.clear();
}

TEST(HttpServerTest, FinishWithinALimitWaitsForNobodyWhereNobodyIsLeft) {
  auto listening = HttpServer::Listen("127.0.0.1", 0, {}, Echo);
  ASSERT_TRUE(listening.ok()) << listening.status();
  HttpServer& server = **listening;
  std::thread thread([&] { server.Run(); });
  HttpClient client(server.port());
  client.SendGet("/a");
  EXPECT_THAT(client.ReadReply(), EndsWith("GET /a "));
  server.FinishWithin(std::chrono::hours(1));
  EXPECT_EQ(client.ReadAll(), "");
  thread.join();
}

TEST(HttpServerTest, APortThatIsTakenIsNamed) {
  Serving serving(Echo);
  const auto second = HttpServer::Listen("127.0.0.1", serving.port(), {}, Echo);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat("127.0.0.1:", serving.port())));
}

}  // namespace
}  // namespace bowline::serve
