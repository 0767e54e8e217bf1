#include "worker/training/rank_process.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace hooke {
namespace {

std::string Written(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// A start file with keys left out means the same as one with the defaults. For instance, collectives overlap, which
// decides together with `order` whether MPI gets full thread support.
TEST(StartFileTest, KeysLeftOutHaveTheirDefaults) {
  const absl::StatusOr<v1::GroupStart> json =
      ReadStartJson(Written("start.json", R"({"job": {"collectives": {"order": "CONCURRENT"}}})"));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->job().collectives().order(), v1::CollectivesSpec::CONCURRENT);
  EXPECT_TRUE(json->job().collectives().overlap());

  v1::GroupStart start;
  start.mutable_job()->mutable_collectives()->set_order(v1::CollectivesSpec::CONCURRENT);
  const absl::StatusOr<v1::GroupStart> binary = ReadStartFile(Written("start.pb", start.SerializeAsString()));
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_TRUE(binary->job().collectives().overlap());

  start.mutable_job()->mutable_collectives()->set_overlap(false);
  const absl::StatusOr<v1::GroupStart> given = ReadStartFile(Written("given.pb", start.SerializeAsString()));
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_FALSE(given->job().collectives().overlap());
}

// An error names the file and says what is wrong with it.
TEST(StartFileTest, RefusesOtherFiles) {
  EXPECT_TRUE(absl::IsNotFound(ReadStartFile("/no/such/file").status()));
  const std::string path = Written("wrong.json", "no JSON");
  const absl::Status wrong = ReadStartJson(path).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_NE(std::string(wrong.message()).find(path), std::string::npos) << wrong;
}

}  // namespace
}  // namespace hooke
