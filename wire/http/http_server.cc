#include "wire/http/http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clocks/steady_time.h"
#include "wire/http/answer_stream.h"

namespace hooke {
namespace {

// A client must take so much of a long answer within `answer_within`.
constexpr size_t kSliceBytes = 256 << 10;

// Reads what the client has sent and nobody has read. If bytes were left, closing the connection would make the kernel
// drop the answer on its way.
void DropInput(int descriptor) {
  char bytes[4096];
  for (int times = 0; times < 16 && recv(descriptor, bytes, sizeof bytes, 0) > 0; ++times) {
  }
}

// Makes close reset the connection. After an answer that only ends too early, Chromium asks for it five times more;
// after a reset it says at once that the download has failed.
void ResetAtClose(int descriptor) {
  const linger now = {1, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

// cpp-httplib parses requests and writes answers. The connections are ours, because its own loop gives each of them a
// thread for as long as the client likes, and shares its port with other processes. For one thread.
class HttpServer::Pages final : public httplib::Server {
 public:
  explicit Pages(const HttpServerOptions& options) : options_(options) {
    set_payload_max_length(options.action_bytes_max);
    // cpp-httplib sends long answers only while it believes that it listens. A lobby listens in its place.
    svr_sock_ = 0;
    // The handler returns Unhandled only for an action that is allowed. cpp-httplib then reads the body and calls Post.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return Answer(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      const auto action = PageOf(options_.actions, request.path);
      if (action != options_.actions.end()) Make(*action, request, response);
    });
  }

  // Returns false if the answer is not whole.
  bool Serve(const ArrivedRequest& request) {
    AnswerStream stream(request.descriptor, request.received, SteadyTime() + options_.answer_within);
    stream_ = &stream;
    whole_ = true;
    bool closed = false;
    process_request(stream, /*close_connection=*/true, closed, [](httplib::Request& parsed) {
      // cpp-httplib would compress for a browser, by Brotli at its slowest: a second for 200 KB.
      parsed.headers.erase("Accept-Encoding");
      parsed.ranges.clear();  // Answers are sent whole.
    });
    stream_ = nullptr;
    return whole_;
  }

 private:
  // Answers what needs no body. Returns false for an action that is allowed.
  bool Answer(const httplib::Request& request, httplib::Response& response) {
    for (const auto& [name, value] : options_.headers) response.set_header(name, value);
    if (options_.checks_host && !NamesThisServer(request.get_header_value("Host"))) {
      response.status = 421;
      response.set_content("this server has another name: use its IP address, or localhost\n", "text/plain");
      return true;
    }
    const auto action = PageOf(options_.actions, request.path);
    const bool acts = action != options_.actions.end();
    const auto page = acts ? action : PageOf(options_.pages, request.path);
    const bool known = acts || page != options_.pages.end();
    const bool open = known && options_.open_pages.count(page->first) > 0;
    if (!open && !Admitted(request)) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_content("send the cluster's token in the header \"Authorization: Bearer TOKEN\"\n", "text/plain");
      return true;
    }
    if (const std::string fault = MethodFault(request, acts); !fault.empty()) {
      response.status = 405;
      response.set_header("Allow", acts ? "POST" : "GET, HEAD");
      response.set_content(fault, "text/plain");
      return true;
    }
    if (!known) {
      std::string paths;
      for (const auto& [path, make] : options_.pages) absl::StrAppend(&paths, " ", path);
      response.status = 404;
      response.set_content(absl::StrCat("there is no such page; there are:", paths, "\n"), "text/plain");
      return true;
    }
    if (acts) {
      const std::string fault = SenderFault(request);
      if (fault.empty()) return false;
      response.status = 403;
      response.set_content(fault, "text/plain");
      return true;
    }
    Make(*page, request, response);
    return true;
  }

  void Make(const std::pair<const std::string, HttpPage>& page, const httplib::Request& request,
            httplib::Response& response) {
    HttpRequest asked;
    asked.path = request.path;
    if (absl::EndsWith(page.first, "*")) asked.rest = request.path.substr(page.first.size() - 1);
    asked.query.insert(request.params.begin(), request.params.end());
    asked.body = request.body;
    asked.head_only = request.method == "HEAD";
    asked.abandoned = [stream = stream_] { return stream->IsGone(); };
    HttpAnswer answer = page.second(asked);
    response.status = answer.status;
    if (!answer.file_name.empty())
      response.set_header("Content-Disposition", absl::StrCat("attachment; filename=\"", answer.file_name, "\""));
    if (answer.next == nullptr) {
      response.set_content(answer.body, answer.type);
      return;
    }
    const auto send = [this, next = std::move(answer.next)](size_t /*offset*/, size_t left, httplib::DataSink& sink) {
      const absl::StatusOr<std::string> bytes = next();
      whole_ = bytes.ok() && !bytes->empty() && bytes->size() <= left && SendSlices(*bytes, sink);
      return whole_;
    };
    response.set_content_provider(answer.bytes, answer.type, send);
  }

  bool SendSlices(absl::string_view bytes, httplib::DataSink& sink) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kSliceBytes))) {
      stream_->Extend(options_.answer_within);
      if (!sink.write(bytes.data(), std::min(bytes.size(), kSliceBytes))) return false;
    }
    return true;
  }

  using PageAt = std::map<std::string, HttpPage>::const_iterator;
  static PageAt PageOf(const std::map<std::string, HttpPage>& pages, const std::string& path) {
    const auto page = pages.find(path);
    if (page != pages.end()) return page;
    for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0; slash = path.rfind('/', slash - 1)) {
      const auto all = pages.find(absl::StrCat(path.substr(0, slash + 1), "*"));
      if (all != pages.end()) return all;
    }
    return pages.end();
  }

  // Returns what is wrong with the request's method, or "".
  static std::string MethodFault(const httplib::Request& request, bool acts) {
    if (!acts) return request.method == "GET" || request.method == "HEAD" ? "" : "pages are read with GET\n";
    const bool good = request.method == "POST" && request.has_header("X-Hooke-Action");
    return good ? "" : "this is done with POST and the header X-Hooke-Action\n";
  }

  // Returns why the page that sends an action is not one of this server, or "".
  std::string SenderFault(const httplib::Request& request) const {
    constexpr char kForeign[] = "a page of another site may not do this\n";
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    if (!site.empty() && site != "same-origin") return kForeign;
    if (request.has_header("Origin")) {
      const std::string origin = request.get_header_value("Origin");
      const size_t scheme = origin.find("://");
      if (scheme == std::string::npos || origin.substr(scheme + 3) != request.get_header_value("Host")) return kForeign;
    }
    if (request.get_header_value("X-Hooke-Action") == options_.action_key) return "";
    return "this page belongs to an earlier start of the server: load it again\n";
  }

  bool NamesThisServer(const std::string& header) const {
    const absl::StatusOr<HostPort> with_port = ParseHostPort(header);
    std::string host = with_port.ok() ? with_port->host : header;
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    if (absl::EqualsIgnoreCase(host, "localhost") || absl::EqualsIgnoreCase(host, options_.listen.host)) return true;
    in6_addr address;
    return inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1;
  }

  bool Admitted(const httplib::Request& request) const {
    if (options_.token.empty()) return true;
    const std::string header = request.get_header_value("Authorization");
    constexpr absl::string_view kBearer = "Bearer ";
    if (!absl::StartsWithIgnoreCase(header, kBearer)) return false;
    return options_.token.Made({header.substr(kBearer.size()), ""});
  }

  const HttpServerOptions& options_;
  AnswerStream* stream_ = nullptr;  // Of the request that is being served.
  bool whole_ = true;               // False: a long answer broke off before its end.
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
    : options_(std::move(options)), address_(HostPort{options_.listen.host, port}.ToString()) {
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
  Pages pages(options_);
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
    if (pages.Serve(request)) {
      shutdown(request.descriptor, SHUT_WR);
      DropInput(request.descriptor);
    } else {
      ResetAtClose(request.descriptor);
    }
    absl::MutexLock lock(&mutex_);
    answering_.erase(request.descriptor);
    close(request.descriptor);
  }
}

}  // namespace hooke
