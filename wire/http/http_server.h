#ifndef HOOKE_WIRE_HTTP_HTTP_SERVER_H_
#define HOOKE_WIRE_HTTP_HTTP_SERVER_H_

// A small HTTP server: each page is a function that a client's GET calls. One thread collects requests, and a few
// threads answer them, one request for each connection. A slow client holds no thread before its request is complete,
// and no longer than `answer_within` after that. Of a long answer it must take each 256 KiB within this time.
//
//   auto server = HttpServer::Start({.listen = {"127.0.0.1", 0}, .flag = "--metrics", .pages = {{"/metrics", page}}});
//   (*server)->address();   // "127.0.0.1:41234"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "wire/cluster_token.h"
#include "wire/host_port.h"
#include "wire/http/request_lobby.h"

namespace hooke {

struct HttpRequest {
  std::string path;  // "/jobs/a-1".
  std::string rest;  // For a page whose name ends in "*": the part of the path that "*" stands for.
  // The decoded parameters. If a name comes twice, its first value counts.
  std::map<std::string, std::string> query;
  std::string body;        // The body of an action; empty for a page.
  bool head_only = false;  // True: the method is HEAD, so the client gets no body.
  // Returns true once nobody waits for the answer any more: the client has gone, or the server ends. May be called
  // until the answer has been sent.
  std::function<bool()> abandoned;
};

struct HttpAnswer {
  std::string body;
  std::string type = "text/plain; charset=utf-8";
  int status = 200;
  // If set, the answer is long, and made while it is sent: `bytes` bytes in place of `body`. It is called until all are
  // there, and returns at least one byte. After an error the connection is reset, so that no client takes the part for
  // the whole.
  std::function<absl::StatusOr<std::string>()> next = {};
  uint64_t bytes = 0;
  std::string file_name = {};  // If not empty, a browser stores the answer under this name.
};

using HttpPage = std::function<HttpAnswer(const HttpRequest&)>;

struct HttpServerOptions {
  HostPort listen;   // Port 0 picks a free one.
  std::string flag;  // The flag that sets the address, for errors: "--metrics".
  // The pages, keyed by path, like "/metrics". A key like "/jobs/*" is the page of all paths that begin with "/jobs/"
  // and have no key of their own. Several threads may call a page at once. A page should take milliseconds. If it takes
  // longer, `threads` must count a thread for it.
  std::map<std::string, HttpPage> pages;
  // Pages that do something, keyed alike. They answer only POST with the header "X-Hooke-Action: KEY". A browser lets
  // no page of another site send this header or read the key. If the browser says which page asks (Origin,
  // Sec-Fetch-Site), that must be a page of this server.
  std::map<std::string, HttpPage> actions = {};
  std::string action_key;          // The key of actions. This server's own pages get it by one of `pages`.
  size_t action_bytes_max = 2048;  // The most bytes of an action's body.
  // If not empty, requests need it as their bearer token, except for `open_pages`.
  ClusterToken token;
  std::set<std::string> open_pages = {};            // Keys of the pages that need no token.
  std::map<std::string, std::string> headers = {};  // Are sent with every answer.
  // If true, a request that names this server by a host name other than localhost and `listen.host` is refused. So no
  // page of a foreign name that leads here (DNS rebinding) makes a browser read from it. IP addresses are no names.
  bool checks_host = false;
  int threads = 2;  // How many threads answer. A long answer keeps its thread until it ends.
  // At most so many connections wait for their request, and at most as many more wait for a thread.
  size_t connections_max = 64;
  size_t request_bytes_max = 16 << 10;               // The most bytes of a request's head.
  absl::Duration receive_within = absl::Seconds(5);  // The head of a request must come within this time.
  // The time from when a thread takes a request until its answer has been sent. Each 256 KiB of a long answer has this
  // time.
  absl::Duration answer_within = absl::Seconds(5);
};

class HttpServer {
 public:
  // After OK it serves. UNAVAILABLE: it cannot listen; the message says why.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Ends all connections, and waits for pages that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT where it listens.
  const std::string& address() const { return address_; }

 private:
  class Pages;

  HttpServer(HttpServerOptions options, uint16_t port);

  void Arrived(ArrivedRequest request) ABSL_LOCKS_EXCLUDED(mutex_);
  void AnswerUntilStop() ABSL_LOCKS_EXCLUDED(mutex_);

  const HttpServerOptions options_;
  const std::string address_;
  absl::Mutex mutex_;
  std::deque<ArrivedRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::set<int> answering_ ABSL_GUARDED_BY(mutex_);  // The descriptors of connections that are being answered.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
  std::unique_ptr<RequestLobby> lobby_;  // Ends first: its thread calls Arrived.
};

}  // namespace hooke

#endif  // HOOKE_WIRE_HTTP_HTTP_SERVER_H_
