#include "wire/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "wire/host_port.h"
#include "wire/http/test_client.h"

namespace hooke {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string Get(const std::string& address, const std::string& path, const std::string& headers = "") {
  return Exchange(address, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n", headers, "\r\n"));
}

HttpServerOptions Options() {
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  options.flag = "--metrics";
  options.pages["/metrics"] = [](const HttpRequest& /*request*/) {
    return HttpAnswer{"figures\n", "text/plain; version=0.0.4"};
  };
  return options;
}

std::unique_ptr<HttpServer> Start(HttpServerOptions options) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(std::move(options));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// A page is answered with its type, with and without a query; HEAD gets no body.
TEST(HttpServerTest, ServesPages) {
  const auto server = Start(Options());
  for (const char* path : {"/metrics", "/metrics?a=b"}) {
    EXPECT_THAT(Get(server->address(), path), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nfigures\n"),
                                                    HasSubstr("Content-Type: text/plain; version=0.0.4\r\n")));
  }
  EXPECT_THAT(Exchange(server->address(), "HEAD /metrics HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n")));
}

// An unknown page, another method than GET, and bytes that are not HTTP each get a status that says so. The server goes
// on.
TEST(HttpServerTest, RefusesWhatItDoesNotKnow) {
  const auto server = Start(Options());
  EXPECT_THAT(Get(server->address(), "/"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("there are: /metrics")));
  EXPECT_THAT(Exchange(server->address(), "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
  EXPECT_THAT(Exchange(server->address(), "this is no request\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Exchange(server->address(), std::string("\0\xff\x16\x03\r\n\r\n", 8)), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get(server->address(), "/" + std::string(9000, 'x')), StartsWith("HTTP/1.1 414"));
  EXPECT_THAT(Get(server->address(), "/metrics"), StartsWith("HTTP/1.1 200"));
}

// With a token, only requests that have it see pages, or learn which pages there are.
TEST(HttpServerTest, AsksForTheToken) {
  HttpServerOptions options = Options();
  options.token = ClusterToken("0123456789abcdef");
  const auto server = Start(std::move(options));
  for (const char* headers :
       {"", "Authorization: Bearer 0123456789abcdeg\r\n", "Authorization: Bearer \r\n", "Authorization: Bearer\r\n",
        "Authorization: Basic 0123456789abcdef\r\n", "Authorization: 0123456789abcdef\r\n"}) {
    EXPECT_THAT(Get(server->address(), "/metrics", headers),
                AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("WWW-Authenticate: Bearer"), HasSubstr("cluster's token")))
        << headers;
  }
  EXPECT_THAT(Get(server->address(), "/other"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Get(server->address(), "/metrics", "Authorization: Bearer 0123456789abcdef\r\n"),
              StartsWith("HTTP/1.1 200"));
}

// A page may stand for all paths that begin alike. It gets the rest of the path, and the query.
TEST(HttpServerTest, OnePageForManyPaths) {
  HttpServerOptions options = Options();
  options.pages["/jobs/*"] = [](const HttpRequest& request) {
    const auto from = request.query.find("from");
    return HttpAnswer{absl::StrCat(request.rest, " from ", from == request.query.end() ? "-" : from->second, "\n")};
  };
  options.pages["/jobs/list"] = [](const HttpRequest& /*request*/) { return HttpAnswer{"list\n"}; };
  const auto server = Start(std::move(options));
  EXPECT_THAT(Get(server->address(), "/jobs/a-1?from=7&from=8"), EndsWith("\r\n\r\na-1 from 7\n"));
  EXPECT_THAT(Get(server->address(), "/jobs/a%2D1/log"), EndsWith("\r\n\r\na-1/log from -\n"));
  EXPECT_THAT(Get(server->address(), "/jobs/list"), EndsWith("\r\n\r\nlist\n"));
  EXPECT_THAT(Get(server->address(), "/jobs"), StartsWith("HTTP/1.1 404"));
}

TEST(HttpServerTest, SendsHeadersAndOpenPages) {
  HttpServerOptions options = Options();
  options.headers["X-Content-Type-Options"] = "nosniff";
  options.token = ClusterToken("0123456789abcdef");
  options.pages["/"] = [](const HttpRequest& /*request*/) { return HttpAnswer{"hello\n"}; };
  options.open_pages = {"/"};
  const auto server = Start(std::move(options));
  EXPECT_THAT(Get(server->address(), "/"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("X-Content-Type-Options: nosniff")));
  EXPECT_THAT(Get(server->address(), "/metrics"), AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("nosniff")));
  EXPECT_THAT(Get(server->address(), "/other"), StartsWith("HTTP/1.1 401"));
}

// An action needs POST and a header. A link cannot send POST, and a form of another site's page cannot send the header.
TEST(HttpServerTest, ActionsNeedPostAndTheirHeader) {
  HttpServerOptions options = Options();
  options.token = ClusterToken("0123456789abcdef");
  options.action_key = "k";
  int done = 0;
  options.actions["/cancel/*"] = [&done](const HttpRequest& request) {
    ++done;
    return HttpAnswer{request.rest};
  };
  const auto server = Start(std::move(options));
  const std::string token = "Authorization: Bearer 0123456789abcdef\r\n";
  const auto post = [&](const std::string& headers) {
    return Exchange(server->address(),
                    absl::StrCat("POST /cancel/a-1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n", headers, "\r\n"));
  };
  EXPECT_THAT(Get(server->address(), "/cancel/a-1", token + "X-Hooke-Action: k\r\n"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: POST")));
  EXPECT_THAT(post(token), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(post("X-Hooke-Action: k\r\n"), StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(done, 0);
  EXPECT_THAT(post(token + "X-Hooke-Action: k\r\n"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\na-1")));
  EXPECT_EQ(done, 1);
}

// A browser says which page asks. A page of another site is refused, and so is one that does not know this start's key.
TEST(HttpServerTest, ActionsAreForPagesOfTheirOwn) {
  HttpServerOptions options = Options();
  options.action_key = "k";
  options.action_bytes_max = 8;
  options.actions["/say"] = [](const HttpRequest& request) { return HttpAnswer{"said " + request.body}; };
  const auto server = Start(std::move(options));
  const auto post = [&](const std::string& headers, const std::string& body = "<a>") {
    return Exchange(server->address(), absl::StrCat("POST /say HTTP/1.1\r\nHost: 127.0.0.1:7\r\nContent-Length: ",
                                                    body.size(), "\r\n", headers, "\r\n", body));
  };
  const std::string key = "X-Hooke-Action: k\r\n";
  for (const char* sender : {"", "Origin: http://127.0.0.1:7\r\n", "Sec-Fetch-Site: same-origin\r\n"}) {
    EXPECT_THAT(post(key + sender), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\nsaid <a>"))) << sender;
  }
  for (const char* sender :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://127.0.0.1:8\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: none\r\n"}) {
    EXPECT_THAT(post(key + sender), AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("another site"))) << sender;
  }
  EXPECT_THAT(post("X-Hooke-Action: j\r\n"), AllOf(StartsWith("HTTP/1.1 403"), HasSubstr("load it again")));
  EXPECT_THAT(post(key, "too long!"), StartsWith("HTTP/1.1 413"));
}

// A browser that accepts compressed answers gets a large one uncompressed, and at once.
TEST(HttpServerTest, CompressesNothing) {
  HttpServerOptions options = Options();
  const std::string text(300000, 'x');
  options.pages["/large"] = [&text](const HttpRequest& /*request*/) { return HttpAnswer{text}; };
  const auto server = Start(std::move(options));
  const std::string answer = Get(server->address(), "/large", "Accept-Encoding: gzip, deflate, br\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr("Content-Length: 300000\r\n"), EndsWith("\r\n\r\n" + text)));
}

// A foreign name that leads to this address is refused.
TEST(HttpServerTest, ChecksTheHostIfAsked) {
  HttpServerOptions options = Options();
  options.checks_host = true;
  const auto server = Start(std::move(options));
  for (const char* host : {"127.0.0.1", "127.0.0.1:7480", "localhost", "LocalHost:7480", "[::1]:7480", "10.0.0.1:1"}) {
    const std::string request = absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\n\r\n");
    EXPECT_THAT(Exchange(server->address(), request), StartsWith("HTTP/1.1 200")) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:7480", "127.0.0.1.evil.example", "localhost.evil.example:1"}) {
    const std::string request = absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\n\r\n");
    EXPECT_THAT(Exchange(server->address(), request), StartsWith("HTTP/1.1 421")) << host;
  }
}

// A port that another server has is refused with the flag to change.
TEST(HttpServerTest, SaysThatAPortIsBusy) {
  const auto server = Start(Options());
  HttpServerOptions options = Options();
  options.listen = *ParseHostPort(server->address());
  const absl::Status status = HttpServer::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), absl::StrCat("cannot listen on ", server->address(),
                                           ": address already in use by another program: choose another address with "
                                           "--metrics"));
  options.listen = {"no.such.host.invalid", 1};
  EXPECT_THAT(std::string(HttpServer::Start(options).status().message()),
              HasSubstr("cannot listen on no.such.host.invalid:1: "));
}

// Many clients that send nothing, or never read their answer, leave room for another one.
TEST(HttpServerTest, SlowClientsDelayNobody) {
  HttpServerOptions options = Options();
  options.receive_within = absl::Seconds(60);
  options.answer_within = absl::Milliseconds(200);
  options.pages["/large"] = [](const HttpRequest& /*request*/) {
    return HttpAnswer{std::string(32 << 20, 'x'), "application/octet-stream"};
  };
  const auto server = Start(std::move(options));
  std::vector<int> clients;
  clients.reserve(100);
  for (int i = 0; i < 100; ++i) clients.push_back(Connect(server->address()));
  const std::string request = "GET /large HTTP/1.1\r\n\r\n";
  for (int i = 98; i < 100; ++i) send(clients[i], request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_THAT(Get(server->address(), "/metrics"), StartsWith("HTTP/1.1 200"));
  for (const int client : clients) close(client);
}

// Connects, sends a GET and reads all of the answer. Returns it, and how the connection ended: 0, or an errno.
std::pair<std::string, int> GetToTheEnd(const std::string& address, const std::string& path) {
  const int client = Connect(address);
  const std::string request = absl::StrCat("GET ", path, " HTTP/1.1\r\nRange: bytes=2-3\r\n\r\n");
  send(client, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char bytes[4096];
  ssize_t count = 0;
  while ((count = recv(client, bytes, sizeof bytes, 0)) > 0) answer.append(bytes, static_cast<size_t>(count));
  const int error = count < 0 ? errno : 0;
  close(client);
  return {answer, error};
}

// A long answer is made piece by piece. It may take longer than `answer_within`, which each piece has for itself. One
// that breaks off is reset, so that a client does not take a part for the whole.
TEST(HttpServerTest, LongAnswersAreWholeOrReset) {
  HttpServerOptions options = Options();
  options.answer_within = absl::Milliseconds(200);
  const auto pieces = [](int good, bool fails) {
    return [good, fails](const HttpRequest& /*request*/) {
      HttpAnswer answer;
      answer.bytes = 8000;
      answer.file_name = "a-1.safetensors";
      answer.next = [good, fails, made = std::make_shared<int>(0)]() -> absl::StatusOr<std::string> {
        absl::SleepFor(absl::Milliseconds(50));  // A slow source.
        if (*made == good && fails) return absl::UnavailableError("a server is away");
        if (*made == good) return std::string();
        return std::string(1000, static_cast<char>('0' + (*made)++));
      };
      return answer;
    };
  };
  options.pages["/good"] = pieces(8, false);
  options.pages["/fails"] = pieces(3, true);
  options.pages["/short"] = pieces(3, false);
  options.pages["/long"] = pieces(9, false);
  options.pages["/fails-at-once"] = pieces(0, true);
  const auto server = Start(std::move(options));
  const auto [good, good_end] = GetToTheEnd(server->address(), "/good");
  EXPECT_THAT(good, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("\r\nContent-Length: 8000\r\n"),
                          HasSubstr("\r\nContent-Disposition: attachment; filename=\"a-1.safetensors\"\r\n"),
                          HasSubstr("\r\n\r\n000"), EndsWith("777")));
  EXPECT_EQ(good.size(), good.find("\r\n\r\n") + 4 + 8000);
  EXPECT_EQ(good_end, 0);
  EXPECT_EQ(GetToTheEnd(server->address(), "/long").second, 0);  // The ninth piece is not asked for.
  for (const char* path : {"/fails", "/short", "/fails-at-once"}) {
    const auto [part, end] = GetToTheEnd(server->address(), path);
    EXPECT_LT(part.size(), size_t{4000}) << path;
    EXPECT_EQ(end, ECONNRESET) << path;
  }
}

// A client that reads too slowly, or goes away, frees the thread of a long answer and what the answer holds.
TEST(HttpServerTest, LongAnswersEndWithTheirClient) {
  HttpServerOptions options = Options();
  options.answer_within = absl::Milliseconds(100);
  options.threads = 1;
  options.pages["/long"] = [](const HttpRequest& /*request*/) {
    HttpAnswer answer;
    answer.bytes = uint64_t{1} << 40;
    answer.next = [] { return std::string(1 << 20, 'x'); };
    return answer;
  };
  const auto server = Start(std::move(options));
  for (const bool stays : {true, false}) {
    const int client = Connect(server->address());
    const std::string request = "GET /long HTTP/1.1\r\n\r\n";
    send(client, request.data(), request.size(), MSG_NOSIGNAL);
    if (!stays) close(client);
    EXPECT_THAT(Get(server->address(), "/metrics"), StartsWith("HTTP/1.1 200"));
    if (stays) close(client);
  }
}

// A page that waits for others learns that its client has gone, or that the server ends.
TEST(HttpServerTest, PagesLearnThatNobodyWaits) {
  for (const bool server_ends : {true, false}) {
    HttpServerOptions options = Options();
    absl::Notification asked;
    absl::Notification abandoned;
    options.pages["/waits"] = [&](const HttpRequest& request) {
      asked.Notify();
      const absl::Time end = SteadyTime() + absl::Seconds(20);
      while (!request.abandoned() && SteadyTime() < end) absl::SleepFor(absl::Milliseconds(1));
      if (request.abandoned()) abandoned.Notify();
      return HttpAnswer{"late\n"};
    };
    auto server = Start(std::move(options));
    const int client = Connect(server->address());
    const std::string request = "GET /waits HTTP/1.1\r\n\r\n";
    send(client, request.data(), request.size(), MSG_NOSIGNAL);
    ASSERT_TRUE(asked.WaitForNotificationWithTimeout(absl::Seconds(20)));
    if (server_ends) {
      server.reset();
    } else {
      close(client);
    }
    EXPECT_TRUE(abandoned.WaitForNotificationWithTimeout(absl::Seconds(20)));
    if (server_ends) close(client);
  }
}

// The destructor does not wait for clients that do not read.
TEST(HttpServerTest, EndsWhileClientsWait) {
  HttpServerOptions options = Options();
  options.answer_within = absl::Hours(1);
  absl::Notification asked;
  options.threads = 1;
  options.pages["/large"] = [&asked](const HttpRequest& /*request*/) {
    asked.Notify();
    return HttpAnswer{std::string(32 << 20, 'x'), "application/octet-stream"};
  };
  auto server = Start(std::move(options));
  const int client = Connect(server->address());
  const std::string request = "GET /large HTTP/1.1\r\n\r\n";
  send(client, request.data(), request.size(), MSG_NOSIGNAL);
  ASSERT_TRUE(asked.WaitForNotificationWithTimeout(absl::Seconds(20)));
  const absl::Time begun = SteadyTime();
  server.reset();
  EXPECT_LT(SteadyTime() - begun, absl::Seconds(20));
  close(client);
}

}  // namespace
}  // namespace hooke
