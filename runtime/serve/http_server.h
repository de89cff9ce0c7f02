#ifndef BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_
#define BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_

// HTTP/1.1 on an event loop of one thread, whatever the number of connections.

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
  // Of a reply that the client does not read; beyond, the connection is closed.
  size_t unread_bytes = 4 << 20;
  // Until a request is complete, and until the client takes the written text.
  std::chrono::milliseconds request_time = std::chrono::seconds(60), write_time = std::chrono::seconds(30);
};

struct HttpRequest {
  std::string method, path;  // the path without its query
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case

  // "" where it is absent.
  absl::string_view header(absl::string_view name) const;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A request and its reply: either Reply, once, or BeginStream, any number of Write, and EndStream. May be called from
// any thread. The server drops text that is written to a client that is gone. A handler that drops the exchange without
// a reply closes the connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  const HttpRequest& request() const { return request_; }
  // Headers of the reply or the stream, whichever it will be. Before either.
  void AddHeaders(const HttpHeaders& headers) { headers_.insert(headers_.end(), headers.begin(), headers.end()); }
  virtual void Reply(int status, std::string content_type, std::string body, HttpHeaders headers = {}) = 0;
  virtual void BeginStream(std::string content_type) = 0;
  virtual void Write(std::string text) = 0;
  virtual void EndStream() = 0;
  // `gone` runs once, on the server's thread, when the client leaves before the reply is complete.
  virtual void OnDisconnect(std::function<void()> gone) = 0;
  // `done` runs once, on the server's thread, when the reply is given to the connection whole, or when the client left
  // before (complete: false), with the reply's status; 0 where there was none. From the handler alone, before it gives
  // the exchange to another thread.
  virtual void OnComplete(std::function<void(int status, bool complete)> done) = 0;

 protected:
  HttpRequest request_;
  HttpHeaders headers_;
};

// Outlives all exchanges.
class HttpServer {
 public:
  // Runs on the server's thread, and returns soon.
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;

  // Binds `port` of the address `host`; 0: a port that is free. kUnavailable where that is taken or not this machine's.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& host, uint16_t port,
                                                            const HttpLimits& limits, Handler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Serves until Stop. On the calling thread.
  virtual void Run() = 0;
  // Ends Run at once; replies that are under way are cut off. May be called from any thread.
  virtual void Stop() = 0;
  // Takes no more connections, and ends Run when the replies that are under way are complete. May be called from any
  // thread.
  virtual void Finish() = 0;
  // As Finish; connections whose replies are not complete, or not taken by their clients, are closed after `limit`. May
  // be called from any thread, also after Finish.
  virtual void FinishWithin(std::chrono::milliseconds limit) = 0;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_HTTP_SERVER_H_
