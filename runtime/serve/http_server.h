#ifndef BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_
#define BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_

// An HTTP/1.1 server: one thread runs an event loop for all connections.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace bowline::serve {

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 4 << 20;
  size_t connections = 1024;
  // The most bytes of a reply that the client has not read. If there are more, the server closes the connection.
  size_t unread_bytes = 4 << 20;
  // Time until a request has arrived in full, and until the client takes the written text.
  std::chrono::milliseconds request_time = std::chrono::seconds(60), write_time = std::chrono::seconds(30);
};

struct HttpRequest {
  std::string method, path;  // the path without its query
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // The value of a header, by its name in lower case; "" if the request has no such header.
  absl::string_view header(absl::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A request and its reply. Call either Reply once, or BeginStream, any number of Write, and EndStream. Any thread may
// call these. The server drops text for a client that has left. If a handler drops the exchange without a reply, the
// server closes the connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  const HttpRequest& request() const { return request_; }
  // Adds headers to the reply or the stream. Call it before Reply or BeginStream.
  void AddHeaders(const HttpHeaders& headers) { headers_.insert(headers_.end(), headers.begin(), headers.end()); }
  virtual void Reply(int status, std::string content_type, std::string body, HttpHeaders headers = {}) = 0;
  virtual void BeginStream(std::string content_type) = 0;
  virtual void Write(std::string text) = 0;
  virtual void EndStream() = 0;
  // Calls `gone` once, on the server's thread, if the client leaves before the reply is complete.
  virtual void OnDisconnect(std::function<void()> gone) = 0;
  // Calls `done` once, on the server's thread: when the connection has taken the whole reply (complete is true), or
  // when the client leaves before that. `status` is the status of the reply, 0 if there is none. Only the handler may
  // call OnComplete, before it gives the exchange to another thread.
  virtual void OnComplete(std::function<void(int status, bool complete)> done) = 0;

 protected:
  HttpRequest request_;
  HttpHeaders headers_;
};

// The server outlives all exchanges.
class HttpServer {
 public:
  // Called on the server's thread for each request; it must return soon.
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;

  // Binds `port` of the address `host`; 0 picks a free port. kUnavailable if the port is taken or `host` is elsewhere.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& host, uint16_t port,
                                                            const HttpLimits& limits, Handler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Serves on the calling thread, until Stop, Finish or FinishWithin ends it.
  virtual void Run() = 0;
  // Ends Run at once, and cuts off the replies under way. Any thread may call it.
  virtual void Stop() = 0;
  // Accepts no more connections, and ends Run once all replies that are under way are complete. Any thread may call
  // it.
  virtual void Finish() = 0;
  // Like Finish, but after `limit` closes the connections whose replies are not complete or not read by their clients.
  // Any thread may call it, also after Finish.
  virtual void FinishWithin(std::chrono::milliseconds limit) = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_
