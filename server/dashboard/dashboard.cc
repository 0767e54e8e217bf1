#include "server/dashboard/dashboard.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clocks/instant.h"
#include "job/history_csv.h"
#include "server/dashboard/dashboard_json.h"
#include "server/dashboard/job_events.h"
#include "server/dashboard/page_export.h"
#include "server/dashboard/page_job.h"
#include "server/dashboard/page_profile.h"
#include "server/dashboard/page_trace.h"
#include "server/dashboard/web_files.h"
#include "wire/host_port.h"
#include "wire/random_hex.h"

namespace hooke {
namespace {

constexpr char kJson[] = "application/json";
constexpr size_t kRowsMax = 2000;
constexpr size_t kPointsMax = 6000;
constexpr size_t kPointsLeast = 100;
constexpr uint64_t kLogPieceBytes = 1 << 20;
constexpr uint64_t kEventBytesMax = 16 << 20;
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
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kInternal:
      return 500;
    default:
      return 503;
  }
}

HttpAnswer Json(std::string body) { return {std::move(body), kJson, 200}; }
HttpAnswer Refusal(const absl::Status& status) { return {ErrorJson(status), kJson, HttpStatusOf(status)}; }
HttpAnswer JsonOr(const absl::StatusOr<std::string>& body) { return body.ok() ? Json(*body) : Refusal(body.status()); }

std::string TextOf(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

// Reads a number of the query; 0 if it is not there. INVALID_ARGUMENT names it.
absl::StatusOr<uint64_t> NumberOf(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  uint64_t number = 0;
  if (found == request.query.end() || absl::SimpleAtoi(found->second, &number)) return number;
  return absl::InvalidArgumentError(absl::StrCat(name, " is no number; give one of at least 0"));
}

class Api {
 public:
  Api(Coordinator* coordinator, const DashboardOptions& options)
      : coordinator_(*coordinator),
        options_(options),
        exports_([this](const std::string& id) { return coordinator_.Status(id, InstantNow()); }, {options.token}),
        profiles_(coordinator),
        traces_(coordinator, {options.token}) {}

  HttpAnswer Page() const { return Json(PageJson(action_key_, options_.coordinator, options_.read_only)); }

  HttpAnswer Jobs(const HttpRequest& request) const {
    const JobRows rows = coordinator_.RowsSince(VersionOf(request), kRowsMax);
    return Json(RowsJson(rows, NameOf(rows.version), Now()));
  }

  HttpAnswer Job(const HttpRequest& request) const {
    const auto view = coordinator_.View(request.rest, VersionOf(request), InstantNow());
    return view.ok() ? JsonOr(ViewJson(*view, NameOf(view->version), Now())) : Refusal(view.status());
  }

  HttpAnswer History(const HttpRequest& request) const {
    const absl::StatusOr<uint64_t> since = NumberOf(request, "since");
    if (!since.ok()) return Refusal(since.status());
    const absl::StatusOr<uint64_t> most = NumberOf(request, "points");
    if (!most.ok()) return Refusal(most.status());
    const auto from = static_cast<int64_t>(std::min<uint64_t>(*since, INT64_MAX));
    const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator_.ReadHistory(request.rest, from);
    // A job without points is no error for a page that draws what there is.
    if (absl::IsFailedPrecondition(points.status())) return Json(HistoryJson({}));
    if (!points.ok()) return Refusal(points.status());
    const size_t points_max = *most == 0 ? kPointsMax : std::clamp<uint64_t>(*most, kPointsLeast, kPointsMax);
    return Json(HistoryJson(ThinHistory(*points, points_max)));
  }

  HttpAnswer Csv(const HttpRequest& request) const {
    const absl::StatusOr<std::vector<v1::HistoryPoint>> points = coordinator_.ReadHistory(request.rest);
    if (!points.ok()) return Refusal(points.status());
    return {HistoryCsv(request.rest, *points), "text/csv; charset=utf-8", 200};
  }

  HttpAnswer Profile(const HttpRequest& request) { return JsonOr(profiles_.Make(request.rest)); }

  HttpAnswer Trace(const HttpRequest& request) {
    absl::StatusOr<HttpAnswer> trace = traces_.Make(request.rest);
    return trace.ok() ? *std::move(trace) : Refusal(trace.status());
  }

  HttpAnswer Log(const HttpRequest& request) const {
    const absl::StatusOr<uint64_t> offset = NumberOf(request, "offset");
    if (!offset.ok()) return Refusal(offset.status());
    const bool from_offset = request.query.count("offset") > 0;
    const absl::StatusOr<LogText> log = from_offset ? coordinator_.ReadLog(request.rest, *offset, kLogBytesMax)
                                                    : coordinator_.ReadLogEnd(request.rest, kLogBytesMax);
    return log.ok() ? Json(LogJson(log->text, log->next_offset)) : Refusal(log.status());
  }

  HttpAnswer Events(const HttpRequest& request) const {
    const absl::StatusOr<uint64_t> offset = NumberOf(request, "offset");
    if (!offset.ok()) return Refusal(offset.status());
    uint64_t next = *offset;
    std::vector<JobEvent> events;
    // Piece by piece, so that a long log takes little memory, and bounded, so that it takes milliseconds.
    for (uint64_t read = 0; read < kEventBytesMax;) {
      const absl::StatusOr<LogText> log = coordinator_.ReadLog(request.rest, next, kLogPieceBytes);
      if (!log.ok()) return Refusal(log.status());
      if (log->text.empty()) break;
      for (JobEvent& event : EventsIn(log->text)) events.push_back(std::move(event));
      read += log->text.size();
      next = log->next_offset;
    }
    return Json(EventsJson(events, next));
  }

  HttpAnswer Nodes() const {
    v1::ListNodesResponse response;
    for (v1::NodeStatus& node : coordinator_.Nodes(InstantNow())) *response.add_nodes() = std::move(node);
    for (v1::NodeLink& link : coordinator_.Links()) *response.add_links() = std::move(link);
    return JsonOr(ToJson(response));
  }

  HttpAnswer Cancel(const HttpRequest& request) const {
    if (!options_.read_only.empty()) return Refusal(ReadOnly());
    const absl::StatusOr<v1::JobStatus> job = coordinator_.Cancel(request.rest, InstantNow());
    return job.ok() ? JsonOr(ToJson(*job)) : Refusal(job.status());
  }

  HttpAnswer Resume(const HttpRequest& request) const {
    if (!options_.read_only.empty()) return Refusal(ReadOnly());
    const absl::StatusOr<Coordinator::Resumed> resumed = coordinator_.Resume(request.rest, InstantNow());
    return resumed.ok() ? JsonOr(ToJson(resumed->job)) : Refusal(resumed.status());
  }

  HttpAnswer Scale(const HttpRequest& request) const {
    if (!options_.read_only.empty()) return Refusal(ReadOnly());
    const absl::StatusOr<uint64_t> groups = NumberOf(request, "groups");
    if (!groups.ok()) return Refusal(groups.status());
    v1::ScaleJobRequest wanted;
    wanted.set_job_id(request.rest);
    wanted.set_site(TextOf(request, "site"));
    wanted.set_groups(static_cast<uint32_t>(std::min<uint64_t>(*groups, UINT32_MAX)));
    const absl::StatusOr<v1::JobStatus> job = coordinator_.Scale(wanted, InstantNow());
    return job.ok() ? JsonOr(ToJson(*job)) : Refusal(job.status());
  }

  HttpAnswer Export(const HttpRequest& request) {
    if (!options_.read_only.empty()) return Refusal(ReadOnly());
    const absl::StatusOr<PreparedExport> prepared = exports_.Prepare(request.rest, request.abandoned);
    return prepared.ok() ? Json(PreparedJson(*prepared)) : Refusal(prepared.status());
  }

  HttpAnswer Download(const HttpRequest& request) {
    // A HEAD would use the ticket up.
    if (request.head_only) return {"a download is read with GET\n", "text/plain; charset=utf-8", 405};
    absl::StatusOr<HttpAnswer> download = exports_.Download(request.rest, request.abandoned);
    return download.ok() ? *std::move(download) : Refusal(download.status());
  }

  // Reads a job file and shows the job that it would be, with its defaults.
  HttpAnswer Check(const HttpRequest& request) const {
    const absl::StatusOr<JobFile> file = ReadPageJob(request.body, TextOf(request, "name"));
    return file.ok() ? JsonOr(ToJson(file->spec)) : Refusal(file.status());
  }

  HttpAnswer Submit(const HttpRequest& request) const {
    if (!options_.read_only.empty()) return Refusal(ReadOnly());
    const absl::StatusOr<JobFile> file = ReadPageJob(request.body, TextOf(request, "name"));
    if (!file.ok()) return Refusal(file.status());
    v1::SubmitRequest submission;
    submission.set_submission_id(TextOf(request, "submission"));
    *submission.mutable_job() = file->spec;
    const absl::StatusOr<std::string> id = coordinator_.Submit(submission, InstantNow());
    return id.ok() ? Json(SubmittedJson(*id)) : Refusal(PageRefusal(*file, id.status()));
  }

  const std::string& action_key() const { return action_key_; }

 private:
  static int64_t Now() { return absl::ToUnixMillis(InstantNow().wall); }

  // A version number is valid only until the coordinator starts again. So the page gets it with `start_` in front,
  // which is random and new at each start.
  std::string NameOf(uint64_t version) const { return absl::StrCat(start_, "-", version); }
  uint64_t VersionOf(const HttpRequest& request) const {
    const std::string name = TextOf(request, "since");
    absl::string_view rest = name;
    uint64_t version = 0;
    const bool ours = absl::ConsumePrefix(&rest, absl::StrCat(start_, "-")) && absl::SimpleAtoi(rest, &version);
    return ours ? version : 0;
  }

  absl::Status ReadOnly() const { return absl::PermissionDeniedError(options_.read_only); }

  Coordinator& coordinator_;
  const DashboardOptions options_;
  const std::string action_key_ = RandomHex(4);
  const std::string start_ = RandomHex(2);
  PageExport exports_;
  PageProfile profiles_;
  PageTrace traces_;
};

}  // namespace

std::string WhyReadOnly(const HostPort& address, const HostPort& listen, const ClusterToken& token) {
  if (address.IsLoopback() || !listen.IsLoopback() || !token.empty()) return "";
  return absl::StrCat("this page only shows: other machines reach it at ", address.ToString(),
                      ", but the coordinator at ", listen.ToString(),
                      " takes orders of this machine only. Use `hooke` there, or start the servers with --token-file");
}

absl::StatusOr<std::unique_ptr<HttpServer>> ServeDashboard(const DashboardOptions& dashboard,
                                                           Coordinator* coordinator) {
  absl::StatusOr<HostPort> listen = ParseHostPort(dashboard.address);
  if (!listen.ok()) return listen.status();
  HttpServerOptions options;
  options.flag = "--dashboard";
  options.token = dashboard.token;
  options.listen = *std::move(listen);
  options.threads = 4 + static_cast<int>(ExportSlotsOptions().at_once);  // A download takes one for its time.
  options.answer_within = kAnswerWithin;
  options.checks_host = true;
  options.headers = {{"Content-Security-Policy", kPolicy},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Resource-Policy", "same-origin"},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cache-Control", "no-store"}};
  for (const WebFile& file : WebFiles()) {
    const std::string path = absl::StrCat("/", std::string(file.name) == "index.html" ? "" : file.name);
    options.pages[path] = [&file](const HttpRequest& /*request*/) {
      return HttpAnswer{std::string(file.content), file.type, 200};
    };
    options.open_pages.insert(path);
  }
  const auto api = std::make_shared<Api>(coordinator, dashboard);
  options.action_key = api->action_key();
  options.action_bytes_max = kJobFileBytesMax + 1;  // ParseJobText says what is wrong with a larger file.
  options.pages["/api/page"] = [api](const HttpRequest& /*request*/) { return api->Page(); };
  options.pages["/api/nodes"] = [api](const HttpRequest& /*request*/) { return api->Nodes(); };
  const auto read = [&](const std::string& path, HttpAnswer (Api::*answer)(const HttpRequest&) const) {
    options.pages[path] = [api, answer](const HttpRequest& request) { return ((*api).*answer)(request); };
  };
  read("/api/jobs", &Api::Jobs);
  read("/api/jobs/*", &Api::Job);
  read("/api/history/*", &Api::History);
  read("/api/csv/*", &Api::Csv);
  read("/api/log/*", &Api::Log);
  read("/api/events/*", &Api::Events);
  options.pages["/api/profile/*"] = [api](const HttpRequest& request) { return api->Profile(request); };
  options.pages["/api/trace/*"] = [api](const HttpRequest& request) { return api->Trace(request); };
  const auto act = [&](const std::string& path, HttpAnswer (Api::*answer)(const HttpRequest&) const) {
    options.actions[path] = [api, answer](const HttpRequest& request) { return ((*api).*answer)(request); };
  };
  options.actions["/api/export/*"] = [api](const HttpRequest& request) { return api->Export(request); };
  options.pages["/api/download/*"] = [api](const HttpRequest& request) { return api->Download(request); };
  options.open_pages.insert("/api/download/*");  // Nobody can guess a ticket.
  act("/api/check", &Api::Check);
  act("/api/submit", &Api::Submit);
  act("/api/cancel/*", &Api::Cancel);
  act("/api/resume/*", &Api::Resume);
  act("/api/scale/*", &Api::Scale);
  return HttpServer::Start(std::move(options));
}

}  // namespace hooke
