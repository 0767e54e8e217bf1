#include "wire/http/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clocks/steady_time.h"
#include "wire/http/answer_stream.h"

namespace hooke {
namespace {

// Reads what the client has sent and nobody has read. If bytes were left, closing the connection would make the kernel
// drop the answer on its way.
void DropInput(int descriptor) {
  char bytes[4096];
  for (int times = 0; times < 16 && recv(descriptor, bytes, sizeof bytes, 0) > 0; ++times) {
  }
}

}  // namespace

// cpp-httplib parses requests and writes answers. The connections are ours, because its own loop gives each of them a
// thread for as long as the client likes, and shares its port with other processes.
class HttpServer::Pages final : public httplib::Server {
 public:
  explicit Pages(const HttpServerOptions& options) : options_(options) {
    set_payload_max_length(options.request_bytes_max);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response);
      return HandlerResponse::Handled;
    });
  }

  void Serve(const ArrivedRequest& request) {
    AnswerStream stream(request.descriptor, request.received, SteadyTime() + options_.answer_within);
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, nullptr);
  }

 private:
  void Answer(const httplib::Request& request, httplib::Response& response) const {
    if (!Admitted(request)) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_content("send the cluster's token in the header \"Authorization: Bearer TOKEN\"\n", "text/plain");
      return;
    }
    if (request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", "GET, HEAD");
      response.set_content("pages are read with GET\n", "text/plain");
      return;
    }
    const auto page = options_.pages.find(request.path);
    if (page == options_.pages.end()) {
      std::string known;
      for (const auto& [path, make] : options_.pages) absl::StrAppend(&known, " ", path);
      response.status = 404;
      response.set_content(absl::StrCat("there is no such page; there are:", known, "\n"), "text/plain");
      return;
    }
    const HttpAnswer answer = page->second();
    response.status = answer.status;
    response.set_content(answer.body, answer.type);
  }

  bool Admitted(const httplib::Request& request) const {
    if (options_.token.empty()) return true;
    const std::string header = request.get_header_value("Authorization");
    constexpr absl::string_view kBearer = "Bearer ";
    if (!absl::StartsWithIgnoreCase(header, kBearer)) return false;
    return options_.token.Made({header.substr(kBearer.size()), ""});
  }

  const HttpServerOptions& options_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  absl::StatusOr<ListeningPort> listening = ListeningPort::Open(options.listen, options.flag);
  if (!listening.ok()) return listening.status();
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options), listening->port()));
  RequestLobbyOptions lobby;
  lobby.connections_max = server->options_.connections_max;
  lobby.head_bytes_max = server->options_.request_bytes_max;
  lobby.receive_within = server->options_.receive_within;
  lobby.arrived = [server = server.get()](ArrivedRequest request) { server->Arrived(std::move(request)); };
  absl::StatusOr<std::unique_ptr<RequestLobby>> started = RequestLobby::Start(*std::move(listening), std::move(lobby));
  if (!started.ok()) return started.status();
  server->lobby_ = *std::move(started);
  return server;
}

HttpServer::HttpServer(HttpServerOptions options, uint16_t port)
    : options_(std::move(options)),
      address_(HostPort{options_.listen.host, port}.ToString()),
      pages_(std::make_unique<Pages>(options_)) {
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { AnswerUntilStop(); });
}

HttpServer::~HttpServer() {
  lobby_.reset();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const ArrivedRequest& request : requests_) close(request.descriptor);
    requests_.clear();
    for (const int descriptor : answering_) shutdown(descriptor, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

void HttpServer::Arrived(ArrivedRequest request) {
  absl::MutexLock lock(&mutex_);
  if (requests_.size() < options_.connections_max) {
    requests_.push_back(std::move(request));
  } else {
    close(request.descriptor);
  }
}

void HttpServer::AnswerUntilStop() {
  const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !requests_.empty(); };
  while (true) {
    ArrivedRequest request;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&work));
      if (stopping_) return;
      request = std::move(requests_.front());
      requests_.pop_front();
      answering_.insert(request.descriptor);
    }
    pages_->Serve(request);
    shutdown(request.descriptor, SHUT_WR);
    DropInput(request.descriptor);
    absl::MutexLock lock(&mutex_);
    answering_.erase(request.descriptor);
    close(request.descriptor);
  }
}

}  // namespace hooke
