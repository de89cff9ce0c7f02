#include "runtime/serve/http_server.h"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <deque>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bowline::serve {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// The path of a request's target without its query: of "/v1/models?x", or "http://host/v1/models" as proxies get it.
std::string PathOf(absl::string_view target) {
  if (const size_t scheme = target.find("://"); scheme != absl::string_view::npos && !absl::StartsWith(target, "/")) {
    target.remove_prefix(std::min(target.find('/', scheme + 3), target.size()));
    if (target.empty() || target[0] != '/') return "/";
  }
  return std::string(target.substr(0, target.find('?')));
}

class Connection;

// Those that are not closed.
struct OpenConnections {
  std::set<Connection*> all;
  std::function<void()> none;  // runs when the last one is closed

  void Remove(Connection* connection) {
    all.erase(connection);
    if (all.empty() && none) none();
  }
};

// A connection: one request after the other.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const HttpLimits& limits, const HttpServer::Handler& handler, OpenConnections& open)
      : stream_(std::move(socket)), limits_(limits), handler_(handler), open_(open) {
    open_.all.insert(this);
  }

  asio::any_io_executor executor() { return stream_.get_executor(); }

  void Read() {
    parser_ = std::make_unique<http::request_parser<http::string_body>>();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser_->body_limit(limits_.body_bytes);
    stream_.expires_after(limits_.request_time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, size_t) { self->HasReadHeader(error); });
  }

  // The rest runs on the server's thread. `number` is that of the exchange, so that one that is over changes nothing.
  void Reply(uint64_t number, int status, const std::string& type, std::string body, const HttpHeaders& headers) {
    if (number != number_ || closed_ || streaming_) return;
    status_ = status;
    http::response<http::string_body> response(static_cast<http::status>(status), version_);
    response.set(http::field::content_type, type);
    for (const auto& [name, value] : headers) response.set(name, value);
    response.keep_alive(keeps_);
    response.body() = std::move(body);
    if (status != 204) response.prepare_payload();  // which has no body, and no length of one
    Send(absl::StrCat(Text(response), is_head_ ? "" : response.body()));
    Complete();
  }

  void BeginStream(uint64_t number, const std::string& type, const HttpHeaders& headers) {
    if (number != number_ || closed_ || streaming_) return;
    streaming_ = true;
    status_ = 200;
    http::response<http::empty_body> response(http::status::ok, version_);
    response.set(http::field::content_type, type);
    response.set(http::field::cache_control, "no-cache");
    for (const auto& [name, value] : headers) response.set(name, value);
    // Clients of HTTP/1.0 know no chunks: the end of the connection is the end of the text.
    chunks_ = version_ >= 11;
    keeps_ = keeps_ && chunks_;
    response.keep_alive(keeps_);
    if (chunks_) response.chunked(true);
    Send(Text(response));
  }

  void Write(uint64_t number, const std::string& text) {
    if (number != number_ || closed_ || !streaming_ || text.empty()) return;
    Send(chunks_ ? absl::StrCat(absl::Hex(text.size()), "\r\n", text, "\r\n") : text);
  }

  void EndStream(uint64_t number) {
    if (number != number_ || closed_ || !streaming_) return;
    if (chunks_) Send("0\r\n\r\n");
    Complete();
  }

  void OnDisconnect(uint64_t number, std::function<void()> gone) {
    if (number != number_) return;
    if (closed_) return gone();
    gone_ = std::move(gone);
  }

  void OnComplete(uint64_t number, std::function<void(int, bool)> done) {
    if (number != number_) return;
    if (closed_) return done(0, false);
    done_ = std::move(done);
  }

  // After the reply that is under way.
  void CloseSoon() {
    keeps_ = false;
    ends_ = true;
    if (!replying_ && unsent_.empty()) Close();
  }

  // A handler that gave no reply.
  void Dropped(uint64_t number) {
    if (number == number_ && replying_) Close();
  }

  void Close() {
    if (closed_) return;
    closed_ = true;
    open_.Remove(this);
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    if (auto gone = std::exchange(gone_, nullptr)) gone();
    if (auto done = std::exchange(done_, nullptr)) done(status_, false);
  }

 private:
  template <typename Response>
  static std::string Text(const Response& response) {
    return absl::StrCat(std::string("HTTP/") + (response.version() >= 11 ? "1.1 " : "1.0 "), response.result_int(), " ",
                        std::string(response.reason()), "\r\n", Fields(response), "\r\n");
  }
  template <typename Response>
  static std::string Fields(const Response& response) {
    std::string text;
    for (const auto& field : response.base()) {
      absl::StrAppend(&text, std::string(field.name_string()), ": ", std::string(field.value()), "\r\n");
    }
    return text;
  }

  void HasReadHeader(error_code error);
  void ReadBody() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) { self->HasRead(error); });
  }
  void HasRead(error_code error);
  void Refuse(int status, absl::string_view why);
  // Sees the end of the connection while a reply is under way. Keeps bytes of the next request, up to the size of one.
  void Watch();
  void Send(std::string text);
  void WriteNext();
  void Complete() {
    replying_ = false;
    ends_ = ends_ || !keeps_;
    gone_ = nullptr;
    if (auto done = std::exchange(done_, nullptr)) done(status_, true);
    if (unsent_.empty()) Next();
  }
  void Next() {
    if (ends_) return lingers_ ? Linger() : Close();
    ++number_;
    status_ = 0;
    streaming_ = false;
    Read();
  }

  // Reads the rest of a request that was refused before its end, for a time. A connection that is closed with unread
  // bytes is reset, and its client may lose the reply.
  void Linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(limits_.write_time);
    Discard();
  }
  void Discard() {
    constexpr size_t kBytes = size_t{64} << 10;
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kBytes), [self = shared_from_this()](error_code error, size_t) {
      if (error || self->closed_) return self->Close();
      self->Discard();
    });
  }

  beast::tcp_stream stream_;
  const HttpLimits& limits_;
  const HttpServer::Handler& handler_;
  OpenConnections& open_;
  beast::flat_buffer buffer_;
  std::unique_ptr<http::request_parser<http::string_body>> parser_;
  std::deque<std::string> unsent_;
  size_t unsent_bytes_ = 0;
  std::function<void()> gone_;
  std::function<void(int, bool)> done_;
  int status_ = 0;  // of the reply; 0: none yet
  uint64_t number_ = 0;
  unsigned version_ = 11;
  bool keeps_ = true, is_head_ = false, chunks_ = true;
  bool replying_ = false, streaming_ = false, ends_ = false, lingers_ = false, closed_ = false;
};

class Exchange : public HttpExchange {
 public:
  Exchange(std::shared_ptr<Connection> connection, uint64_t number, HttpRequest request)
      : connection_(std::move(connection)), number_(number) {
    request_ = std::move(request);
  }
  ~Exchange() override {
    try {
      Post([number = number_](Connection& connection) { connection.Dropped(number); });
    } catch (...) {
      std::fputs("http server: there is no memory to close a connection; its client must\n", stderr);
    }
  }

  void Reply(int status, std::string type, std::string body, HttpHeaders headers) override {
    headers.insert(headers.end(), headers_.begin(), headers_.end());
    Post([number = number_, status, type = std::move(type), body = std::move(body), headers = std::move(headers)](
             Connection& connection) mutable { connection.Reply(number, status, type, std::move(body), headers); });
  }
  void BeginStream(std::string type) override {
    Post([type = std::move(type), headers = headers_, number = number_](Connection& connection) {
      connection.BeginStream(number, type, headers);
    });
  }
  void Write(std::string text) override {
    Post([text = std::move(text), number = number_](Connection& connection) { connection.Write(number, text); });
  }
  void EndStream() override {
    Post([number = number_](Connection& connection) { connection.EndStream(number); });
  }
  void OnDisconnect(std::function<void()> gone) override {
    AtOnce([gone = std::move(gone), number = number_](Connection& connection) mutable {
      connection.OnDisconnect(number, std::move(gone));
    });
  }
  void OnComplete(std::function<void(int, bool)> done) override {
    AtOnce([done = std::move(done), number = number_](Connection& connection) mutable {
      connection.OnComplete(number, std::move(done));
    });
  }

 private:
  // At once on the server's thread: what it posts there would come behind what other threads posted meanwhile.
  template <typename Function>
  void AtOnce(Function function) {
    asio::dispatch(connection_->executor(),
                   [connection = connection_, function = std::move(function)]() mutable { function(*connection); });
  }
  template <typename Function>
  void Post(Function function) {
    asio::post(connection_->executor(),
               [connection = connection_, function = std::move(function)]() mutable { function(*connection); });
  }

  std::shared_ptr<Connection> connection_;
  const uint64_t number_;
};

void Connection::HasReadHeader(error_code error) {
  if (error) return HasRead(error);
  const auto& header = parser_->get();
  const auto expected = header[http::field::expect];
  const bool waits = header.version() >= 11 && !parser_->is_done() && buffer_.size() == 0 &&
                     absl::EqualsIgnoreCase(absl::string_view(expected.data(), expected.size()), "100-continue");
  if (!waits) return ReadBody();
  static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                    [self = shared_from_this()](error_code written, size_t) {
                      if (written) return self->Close();
                      self->ReadBody();
                    });
}

void Connection::Refuse(int status, absl::string_view why) {
  Reply(number_, status, "application/json",
        absl::StrCat("{\"error\":{\"message\":\"", why,
                     "\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}"),
        {});
}

void Connection::HasRead(error_code error) {
  if (error) {
    // An error of the request is answered; any other is a client that left, or was too slow.
    const bool header = error == http::error::header_limit, body = error == http::error::body_limit;
    const bool malformed = error.category() == http::make_error_code(http::error::bad_method).category() &&
                           error != http::error::end_of_stream && error != http::error::partial_message;
    if (!header && !body && !malformed) return Close();
    replying_ = true;
    keeps_ = false;
    lingers_ = true;
    const int status = body ? 413 : header ? 431 : 400;
    return Refuse(status, body     ? absl::StrCat("the body has more than ", limits_.body_bytes, " bytes")
                          : header ? absl::StrCat("the header has more than ", limits_.header_bytes, " bytes")
                                   : absl::StrCat("the request is not HTTP: ", error.message()));
  }
  stream_.expires_never();
  http::request<http::string_body> message = parser_->release();
  version_ = message.version();
  keeps_ = message.keep_alive() && !ends_;
  is_head_ = message.method() == http::verb::head;
  replying_ = true;
  // RFC 9112, sections 3.2 and 6.1.
  if (version_ >= 11 && message.count(http::field::host) != 1) {
    return Refuse(400, "a request has one header 'Host'");
  }
  if (const auto coding = message[http::field::transfer_encoding];
      !coding.empty() && !absl::EqualsIgnoreCase(absl::string_view(coding.data(), coding.size()), "chunked")) {
    keeps_ = false;  // it is not known where the body ends
    lingers_ = true;
    return Refuse(501, "the only Transfer-Encoding is 'chunked'");
  }
  if (const auto coding = message[http::field::content_encoding];
      !coding.empty() && !absl::EqualsIgnoreCase(absl::string_view(coding.data(), coding.size()), "identity")) {
    return Refuse(415, "the body has a Content-Encoding; send it without one");
  }
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.path = PathOf({message.target().data(), message.target().size()});
  for (const auto& field : message.base()) {
    request.headers.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
  }
  request.body = std::move(message.body());
  Watch();
  handler_(std::make_shared<Exchange>(shared_from_this(), number_, std::move(request)));
}

void Connection::Watch() {
  stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), number = number_](error_code error) {
    if (error || self->closed_ || number != self->number_ || !self->replying_) return;
    const size_t most = self->limits_.header_bytes + self->limits_.body_bytes;
    if (self->buffer_.size() >= most) return self->Close();
    constexpr size_t kBytes = size_t{16} << 10;
    error_code received;
    self->stream_.socket().non_blocking(true, received);
    const size_t bytes = self->stream_.socket().receive(
        self->buffer_.prepare(std::min(kBytes, most - self->buffer_.size())), 0, received);
    if (received != asio::error::would_block) {
      if (received || bytes == 0) return self->Close();
      self->buffer_.commit(bytes);
    }
    self->Watch();
  });
}

void Connection::Send(std::string text) {
  unsent_bytes_ += text.size();
  const bool idle = unsent_.empty();
  unsent_.push_back(std::move(text));
  if (streaming_ && unsent_bytes_ > limits_.unread_bytes) return Close();
  if (idle) WriteNext();
}

void Connection::WriteNext() {
  stream_.expires_after(limits_.write_time);
  asio::async_write(stream_, asio::buffer(unsent_.front()), [self = shared_from_this()](error_code error, size_t) {
    if (error || self->closed_) return self->Close();
    self->stream_.expires_never();
    self->unsent_bytes_ -= self->unsent_.front().size();
    self->unsent_.pop_front();
    if (!self->unsent_.empty()) return self->WriteNext();
    if (!self->replying_) self->Next();
  });
}

class BeastServer : public HttpServer {
 public:
  BeastServer(const HttpLimits& limits, Handler handler) : limits_(limits), handler_(std::move(handler)) {
    open_.none = [this] { deadline_.cancel(); };  // which would keep Run
  }

  absl::Status Bind(const std::string& host, uint16_t port) {
    error_code error;
    tcp::resolver resolver(context_);
    const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
    const std::string place = absl::StrCat(host, ":", port);
    if (error || found.empty()) {
      return absl::UnavailableError(absl::StrCat("cannot find the address ", place, ": ", error.message()));
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", place, ": ", error.message(), "; choose another --host or --port"));
    }
    port_ = acceptor_.local_endpoint().port();
    Accept();
    return absl::OkStatus();
  }

  uint16_t port() const override { return port_; }
  void Run() override { context_.run(); }
  void Stop() override { context_.stop(); }
  void Finish() override {
    asio::post(context_, [this] { CloseSoon(); });
  }
  void FinishWithin(std::chrono::milliseconds limit) override {
    asio::post(context_, [this, limit] {
      CloseSoon();
      if (open_.all.empty()) return;
      deadline_.expires_after(limit);
      deadline_.async_wait([this](error_code stopped) {
        if (stopped) return;
        for (Connection* connection : std::set<Connection*>(open_.all)) connection->Close();
      });
    });
  }

 private:
  void CloseSoon() {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    for (Connection* connection : std::set<Connection*>(open_.all)) connection->CloseSoon();
  }
  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error && open_.all.size() < limits_.connections) {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        std::make_shared<Connection>(std::move(socket), limits_, handler_, open_)->Read();
      }
      // A socket beyond the limit is closed at once; when descriptors are used up, the next try comes later.
      if (!error) return Accept();
      retry_.expires_after(std::chrono::milliseconds(100));
      retry_.async_wait([this](error_code stopped) {
        if (!stopped) Accept();
      });
    });
  }

  const HttpLimits limits_;
  const Handler handler_;
  uint16_t port_ = 0;
  OpenConnections open_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer retry_{context_}, deadline_{context_};
};

}  // namespace

absl::string_view HttpRequest::header(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& host, uint16_t port,
                                                               const HttpLimits& limits, Handler handler) {
  auto server = std::make_unique<BeastServer>(limits, std::move(handler));
  BOWLINE_RETURN_IF_ERROR(server->Bind(host, port));
  return server;
}

}  // namespace bowline::serve
