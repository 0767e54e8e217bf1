#include "server/dashboard/dashboard.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/coordinator/instant.h"
#include "server/dashboard/dashboard_json.h"
#include "server/dashboard/web_files.h"
#include "wire/host_port.h"

namespace hooke {
namespace {

constexpr char kJson[] = "application/json";
constexpr size_t kListBytesMax = 512 << 10;
constexpr size_t kPointsMax = 6000;
constexpr uint64_t kLogBytesMax = 256 << 10;
// Longer than CoordinatorOptions::store_timeout, for which a cancelled job may wait.
constexpr absl::Duration kAnswerWithin = absl::Seconds(15);
// The page loads nothing from elsewhere, runs no script of its markup, and no other page may frame it.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    default:
      return 503;
  }
}

HttpAnswer Json(std::string body) { return {std::move(body), kJson, 200}; }
HttpAnswer Refusal(const absl::Status& status) { return {ErrorJson(status), kJson, HttpStatusOf(status)}; }

// Reads a number of the query; 0 if it is not there. INVALID_ARGUMENT names it.
absl::StatusOr<uint64_t> NumberOf(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  uint64_t number = 0;
  if (found == request.query.end() || absl::SimpleAtoi(found->second, &number)) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, " is no number; give one of at least 0"));
}

class Api {
 public:
  explicit Api(Coordinator* coordinator) : coordinator_(*coordinator) {}

  HttpAnswer Jobs() const {
    v1::ListJobsResponse response;
    ClusterState::JobList list = coordinator_.List(kListBytesMax, InstantNow());
    for (v1::JobStatus& job : list.jobs) *response.add_jobs() = std::move(job);
    response.set_left_out(static_cast<uint32_t>(list.left_out));
    return Json(ToJson(response));
  }

  HttpAnswer Job(const HttpRequest& request) const {
    const absl::StatusOr<v1::JobStatus> job = coordinator_.Status(request.rest, InstantNow());
    return job.ok() ? Json(ToJson(*job)) : Refusal(job.status());
  }

  HttpAnswer Cancel(const HttpRequest& request) const {
    const absl::StatusOr<v1::JobStatus> job = coordinator_.Cancel(request.rest, InstantNow());
    return job.ok() ? Json(ToJson(*job)) : Refusal(job.status());
  }

  HttpAnswer History(const HttpRequest& request) const {
    const absl::StatusOr<uint64_t> since = NumberOf(request, "since");
    if (!since.ok()) return Refusal(since.status());
    const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator_.ReadHistory(request.rest);
    // A job without points is no error for a page that draws what there is.
    if (!points.ok() && !absl::IsFailedPrecondition(points.status())) return Refusal(points.status());
    v1::ReadHistoryResponse response;
    if (points.ok()) {
      for (v1::HistoryPoint& point : ThinHistory(*points, static_cast<int64_t>(*since), kPointsMax)) {
        *response.add_points() = std::move(point);
      }
    }
    return Json(ToJson(response));
  }

  HttpAnswer Log(const HttpRequest& request) const {
    const absl::StatusOr<uint64_t> offset = NumberOf(request, "offset");
    if (!offset.ok()) return Refusal(offset.status());
    const absl::StatusOr<LogText> log = coordinator_.ReadLog(request.rest, *offset, kLogBytesMax);
    return log.ok() ? Json(LogJson(log->text, log->next_offset)) : Refusal(log.status());
  }

  HttpAnswer Nodes() const {
    v1::ListNodesResponse response;
    for (v1::NodeStatus& node : coordinator_.Nodes(InstantNow())) *response.add_nodes() = std::move(node);
    for (v1::NodeLink& link : coordinator_.Links()) *response.add_links() = std::move(link);
    return Json(ToJson(response));
  }

 private:
  Coordinator& coordinator_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> ServeDashboard(const std::string& address, const ClusterToken& token,
                                                           Coordinator* coordinator) {
  absl::StatusOr<HostPort> listen = ParseHostPort(address);
  if (!listen.ok()) return listen.status();
  HttpServerOptions options;
  options.flag = "--dashboard";
  options.token = token;
  options.listen = *std::move(listen);
  options.threads = 4;
  options.answer_within = kAnswerWithin;
  options.checks_host = true;
  options.headers = {{"Content-Security-Policy", kPolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cache-Control", "no-store"}};
  for (const WebFile& file : WebFiles()) {
    const std::string path = absl::StrCat("/", std::string(file.name) == "index.html" ? "" : file.name);
    options.pages[path] = [&file](const HttpRequest& /*request*/) {
      return HttpAnswer{std::string(file.content), file.type, 200};
    };
    options.open_pages.insert(path);
  }
  const Api api(coordinator);
  options.pages["/api/jobs"] = [api](const HttpRequest& /*request*/) { return api.Jobs(); };
  options.pages["/api/jobs/*"] = [api](const HttpRequest& request) { return api.Job(request); };
  options.pages["/api/history/*"] = [api](const HttpRequest& request) { return api.History(request); };
  options.pages["/api/log/*"] = [api](const HttpRequest& request) { return api.Log(request); };
  options.pages["/api/nodes"] = [api](const HttpRequest& /*request*/) { return api.Nodes(); };
  options.actions["/api/cancel/*"] = [api](const HttpRequest& request) { return api.Cancel(request); };
  return HttpServer::Start(std::move(options));
}

}  // namespace hooke
