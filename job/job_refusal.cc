#include "job/job_refusal.h"

#include <algorithm>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "job/visible_text.h"
#include "proto/coordinator.pb.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

constexpr size_t kMessageBytesMax = 400;
constexpr char kTypeUrl[] = "type.googleapis.com/hooke.v1.JobProblems";

std::string Cut(absl::string_view text) {
  if (text.size() <= kMessageBytesMax) return std::string(text);
  return absl::StrCat(FirstBytes(text, kMessageBytesMax), "...");
}

}  // namespace

absl::Status RefusalOf(absl::Span<const JobProblem> problems, absl::StatusCode code) {
  if (problems.empty()) return absl::OkStatus();
  const std::string more = problems.size() > 1 ? absl::StrCat(" (and ", problems.size() - 1, " more)") : "";
  const std::string message = absl::StrCat(problems[0].key, ": ", Cut(problems[0].message), more);
  v1::JobProblems listed;
  for (const JobProblem& problem : problems.first(std::min(problems.size(), kProblemsListed))) {
    v1::JobProblem& one = *listed.add_problems();
    one.set_key(problem.key);
    one.set_message(Cut(problem.message));
  }
  listed.set_left_out(problems.size() - listed.problems_size());
  v1::StatusDetails details;
  details.set_code(static_cast<int>(code));
  details.set_message(message);
  google::protobuf::Any& any = *details.add_details();
  any.set_type_url(kTypeUrl);
  any.set_value(listed.SerializeAsString());
  absl::Status status(code, message);
  status.SetPayload(kStatusDetails, absl::Cord(details.SerializeAsString()));
  return status;
}

Refusal ReadRefusal(const absl::Status& status) {
  Refusal refusal;
  const absl::optional<absl::Cord> payload = status.GetPayload(kStatusDetails);
  v1::StatusDetails details;
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return refusal;
  for (const google::protobuf::Any& any : details.details()) {
    v1::JobProblems listed;
    if (any.type_url() != kTypeUrl || !listed.ParseFromString(any.value())) continue;
    refusal.left_out += listed.left_out();
    for (const v1::JobProblem& problem : listed.problems()) {
      if (refusal.problems.size() == kProblemsListed) {
        ++refusal.left_out;
      } else {
        refusal.problems.push_back({Escaped(Cut(problem.key())), Escaped(Cut(problem.message())), {}});
      }
    }
  }
  return refusal;
}

}  // namespace hooke
