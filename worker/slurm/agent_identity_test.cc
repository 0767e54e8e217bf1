#include "worker/slurm/agent_identity.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

class AgentIdentityTest : public testing::Test {
 protected:
  AgentIdentityTest() { std::filesystem::create_directories(folder_); }
  ~AgentIdentityTest() override { std::filesystem::remove_all(folder_); }

  std::string InstanceOf(const std::string& host) const {
    const auto identity = AgentIdentity::Take(folder_, host);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return identity.ok() ? (*identity)->instance() : "";
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/agent_identity", getpid());
};

TEST_F(AgentIdentityTest, StaysTheSameOnAHost) {
  const std::string first = InstanceOf("login1");
  EXPECT_EQ(first.size(), 16 + 1 + 6);
  EXPECT_EQ(InstanceOf("login1"), first);
  EXPECT_NE(InstanceOf("login2"), first);
}

TEST_F(AgentIdentityTest, OneProcessHasIt) {
  const auto first = AgentIdentity::Take(folder_, "login1");
  ASSERT_TRUE(first.ok());
  const auto second = AgentIdentity::Take(folder_, "login1");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder_ + ": end it first, or give this one another"));
  EXPECT_TRUE(AgentIdentity::Take(folder_, "login2").ok()) << "another host is not in the way";
}

TEST_F(AgentIdentityTest, ADamagedFileIsMadeAnew) {
  std::ofstream(folder_ + "/instance-login1") << "half";
  const std::string first = InstanceOf("login1");
  EXPECT_EQ(first.size(), 16 + 1 + 6);
  EXPECT_EQ(InstanceOf("login1"), first);
}

TEST_F(AgentIdentityTest, ALongHostNameIsCut) { EXPECT_EQ(InstanceOf(std::string(300, 'h')).size(), 16 + 1 + 100); }

TEST_F(AgentIdentityTest, AMissingFolderIsSaid) {
  EXPECT_EQ(AgentIdentity::Take(folder_ + "/none", "h").status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hooke
