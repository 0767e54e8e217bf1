// Jobs become records and come back in every field. Records that no version wrote are refused by name.

#include "server/records/job_records.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/record.pb.h"
#include "server/records/full_job.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

constexpr char kPrefix[] = "job/00000000000000000007/";
constexpr char kGroup1[] = "job/00000000000000000007/group/0000000001";
constexpr char kState[] = "job/00000000000000000007/state";
constexpr char kSubmission[] = "job/00000000000000000007/submission";

std::string DamageOf(const Records& records) {
  const absl::Status status = JobFrom(records).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  return std::string(status.message());
}

// Fails for each field that is not set, in a message of proto/record.proto and in those inside it.
void ExpectEachFieldSet(const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool is_set =
        field->is_repeated() ? reflection.FieldSize(message, field) > 0 : reflection.HasField(message, field);
    EXPECT_TRUE(is_set) << field->full_name() << " is not set";
    if (is_set && field->is_repeated() && field->message_type() != nullptr) {
      ExpectEachFieldSet(reflection.GetRepeatedMessage(message, field, 0));
    }
  }
}

// Each field of each message of a job comes from the JobRecord, and goes back to it.
TEST(JobRecordsTest, KeepsEveryField) {
  JobRecord job = FullJob(7);
  job.groups.resize(2);
  Records records = RecordsOf(job);
  EXPECT_EQ(TextOf(*JobFrom(records)), TextOf(job));

  stored::Submission submission;
  stored::State state;
  stored::ServerList servers;
  stored::Group group;
  ASSERT_TRUE(submission.ParseFromString(records[kSubmission]));
  ASSERT_TRUE(state.ParseFromString(records[kState]));
  ASSERT_TRUE(servers.ParseFromString(records[absl::StrCat(kPrefix, "servers")]));
  ASSERT_TRUE(group.ParseFromString(records[kGroup1]));
  // Only an evaluating group has this field set. FullJob's third group is one: the last line of this test covers it.
  group.set_evaluated(true);
  group.mutable_parts(0)->set_first_rank(1);
  ExpectEachFieldSet(submission);
  ExpectEachFieldSet(state);
  ExpectEachFieldSet(servers);
  ExpectEachFieldSet(group);
  EXPECT_EQ(TextOf(*JobFrom(RecordsOf(FullJob(7)))), TextOf(FullJob(7)));
}

// A job that was just submitted has no servers, no accuracy, and groups without a place.
TEST(JobRecordsTest, KeepsANewJob) {
  JobRecord job;
  job.number = UINT64_MAX;
  job.job_id = "a-18446744073709551615";
  job.groups.emplace_back();
  EXPECT_EQ(TextOf(*JobFrom(RecordsOf(job))), TextOf(job));
  EXPECT_FALSE(JobFrom(RecordsOf(job))->center.has_value());
}

// The keys are those of the table in job_records.h, and their order is that of jobs and groups.
TEST(JobRecordsTest, KeysAreInOrder) {
  JobRecord job = FullJob(7);
  for (uint32_t i = 3; i < 12; ++i) {
    job.groups.push_back(job.groups[0]);
    job.groups[i].group = i;
  }
  const Records records = RecordsOf(job);
  ASSERT_EQ(records.size(), 15u);
  EXPECT_EQ(std::next(records.begin())->first, kGroup1);
  EXPECT_EQ(std::next(records.begin(), 11)->first, absl::StrCat(kPrefix, "group/0000000011"));
  EXPECT_EQ(records.rbegin()->first, kSubmission);
  EXPECT_EQ(TextOf(*JobFrom(records)), TextOf(job));
  EXPECT_LT(JobPrefix(9), JobPrefix(10));
  EXPECT_EQ(ForgottenKey(12), "forgotten/00000000000000000012");
}

// A change of one group changes one record.
TEST(JobRecordsTest, AGroupHasARecordOfItsOwn) {
  JobRecord job = FullJob(7);
  Records before = RecordsOf(job);
  job.groups[1].state = v1::GROUP_STATE_FAILED;
  Records changed;
  for (const auto& [key, value] : RecordsOf(job)) {
    if (before[key] != value) changed[key] = value;
  }
  EXPECT_THAT(changed, ElementsAre(Key(kGroup1)));
}

// Fields and keys of a newer version do no harm. A field is dropped when its record changes.
TEST(JobRecordsTest, IgnoresWhatItDoesNotKnow) {
  Records records = RecordsOf(FullJob(7));
  stored::Group group;
  ASSERT_TRUE(group.ParseFromString(records[kGroup1]));
  group.GetReflection()->MutableUnknownFields(&group)->AddLengthDelimited(1000, "from tomorrow");
  records[kGroup1] = group.SerializeAsString();
  records[absl::StrCat(kPrefix, "mood")] = "good";
  EXPECT_EQ(TextOf(*JobFrom(records)), TextOf(FullJob(7)));
}

// A record that does not parse, is missing, or has values that no version writes, is named.
TEST(JobRecordsTest, NamesADamagedRecord) {
  const Records good = RecordsOf(FullJob(7));
  for (const auto& [key, value] : good) {
    Records records = good;
    records[key] = "\xff";
    EXPECT_EQ(DamageOf(records), absl::StrCat("record ", key, " does not parse"));
  }
  for (const char* key : {kGroup1, kState, kSubmission}) {
    Records records = good;
    records.erase(key);
    EXPECT_EQ(DamageOf(records), absl::StrCat("record ", key, " is missing"));
  }
  Records records = good;
  records[kState] = "";
  EXPECT_EQ(DamageOf(records), absl::StrCat("record ", kState, " has the unknown state 0"));
  stored::Group group;
  ASSERT_TRUE(group.ParseFromString(good.at(kGroup1)));
  group.set_state(static_cast<v1::GroupState>(77));
  records = good;
  records[kGroup1] = group.SerializeAsString();
  EXPECT_EQ(DamageOf(records), absl::StrCat("record ", kGroup1, " has the unknown state 77"));
  group.set_task(v1::GroupStart::TASK_UNSPECIFIED);
  records[kGroup1] = group.SerializeAsString();
  EXPECT_EQ(DamageOf(records), absl::StrCat("record ", kGroup1, " has the unknown task 0"));
  EXPECT_THAT(DamageOf({{"job/seven/state", ""}}), HasSubstr("record job/seven/state has no number"));
  EXPECT_THAT(DamageOf({{"job/0000000000000000000x/state", ""}}), HasSubstr("has no number"));
  EXPECT_THAT(DamageOf({{"job/00000000000000000007", ""}}), HasSubstr("is not named like a record of a job"));
}

TEST(JobRecordsTest, KeepsForgottenJobs) {
  const absl::StatusOr<ForgottenJob> job = ForgottenFrom(ForgottenKey(9), ForgottenRecord({"a-9", 9, "key"}));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->job_id, "a-9");
  EXPECT_EQ(job->number, 9u);
  EXPECT_EQ(job->job_key, "key");
  EXPECT_EQ(ForgottenFrom("forgotten/9", "").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(ForgottenFrom(ForgottenKey(9), "\xff").status().message()),
              HasSubstr("record forgotten/00000000000000000009 does not parse"));
}

// A newer format is refused with what to do; a format that this kind of record never had is damage.
TEST(JobRecordsTest, ChecksTheFormat) {
  EXPECT_TRUE(CheckFormat(FormatRecord()).ok());
  stored::Format format;
  format.set_version(5);
  const absl::Status newer = CheckFormat(format.SerializeAsString());
  EXPECT_EQ(newer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(newer.message(),
            "has format 5, this hooke-server knows format 4: start the version of Hooke that wrote it");
  EXPECT_EQ(CheckFormat("").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckFormat("\xff").code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace hooke
