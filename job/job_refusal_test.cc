#include "job/job_refusal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "proto/coordinator.pb.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

// The client reads the problems that the coordinator wrote.
TEST(JobRefusalTest, TravelsInAStatus) {
  EXPECT_TRUE(RefusalOf({}).ok());
  const absl::Status status = RefusalOf({{"train.epochs", "0 is out of range", {}}, {"model", "is not known", {}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "train.epochs: 0 is out of range (and 1 more)");
  const Refusal refusal = ReadRefusal(status);
  ASSERT_EQ(refusal.problems.size(), 2u);
  EXPECT_EQ(refusal.problems[0].key, "train.epochs");
  EXPECT_EQ(refusal.problems[1].message, "is not known");
  EXPECT_EQ(refusal.left_out, 0u);
}

// A gRPC client takes 8 KiB of trailers. However many problems a job has, the status stays well below that.
TEST(JobRefusalTest, IsBounded) {
  const std::vector<JobProblem> problems(5000, JobProblem{"averaging.staleness_power", std::string(5000, 'x'), {}});
  const absl::Status status = RefusalOf(problems);
  EXPECT_LT(status.message().size() + status.GetPayload(kStatusDetails)->size() * 4 / 3, 7u << 10);
  const Refusal refusal = ReadRefusal(status);
  EXPECT_EQ(refusal.problems.size(), kProblemsListed);
  EXPECT_EQ(refusal.left_out, 4990u);
}

// Other statuses and unreadable details give no problems. Control characters from a peer are escaped.
TEST(JobRefusalTest, TrustsNoPeer) {
  EXPECT_TRUE(ReadRefusal(absl::OkStatus()).problems.empty());
  EXPECT_TRUE(ReadRefusal(absl::InvalidArgumentError("no")).problems.empty());
  absl::Status status = absl::InvalidArgumentError("no");
  status.SetPayload(kStatusDetails, absl::Cord("\xff\xff\xff"));
  EXPECT_TRUE(ReadRefusal(status).problems.empty());

  v1::JobProblems listed;
  for (int i = 0; i < 100; ++i) {
    listed.add_problems()->set_key("\x1b[31m");
    listed.mutable_problems(i)->set_message(std::string(100000, '\n'));
  }
  v1::StatusDetails details;
  details.add_details()->set_type_url("another");
  details.add_details()->set_type_url("type.googleapis.com/hooke.v1.JobProblems");
  details.mutable_details(1)->set_value(listed.SerializeAsString());
  status.SetPayload(kStatusDetails, absl::Cord(details.SerializeAsString()));
  const Refusal refusal = ReadRefusal(status);
  ASSERT_EQ(refusal.problems.size(), kProblemsListed);
  EXPECT_EQ(refusal.left_out, 90u);
  EXPECT_EQ(refusal.problems[0].key, "\\x1b[31m");
  EXPECT_LT(refusal.problems[0].message.size(), 1000u);
  EXPECT_EQ(refusal.problems[0].message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace hooke
