#include "client/coordinator_address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cluster_folder.h"

namespace hooke {
namespace {

class CoordinatorAddressTest : public ::testing::Test {
 protected:
  ~CoordinatorAddressTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/coordinator_address_test");
};

// The flag wins over the environment, that over a running local cluster, that over the default.
TEST_F(CoordinatorAddressTest, FlagThenEnvironmentThenLocalCluster) {
  EXPECT_EQ(*ChooseCoordinator({"", "", ""}), "127.0.0.1:7411");
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:7411");
  absl::StatusOr<ClusterFolder> cluster = ClusterFolder::Own(folder_);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:7411");  // It is starting.
  ASSERT_TRUE(cluster->Announce("127.0.0.1:4001").ok());
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:4001");
  EXPECT_EQ(*ChooseCoordinator({"", "b:2", folder_}), "b:2");
  EXPECT_EQ(*ChooseCoordinator({"a:1", "b:2", folder_}), "a:1");
}

// An address that a killed `up` left behind is not used; a clean end removes it.
TEST_F(CoordinatorAddressTest, AStaleClusterIsNotUsed) {
  std::optional<ClusterFolder> cluster(*ClusterFolder::Own(folder_));
  ASSERT_TRUE(cluster->Announce("127.0.0.1:4001").ok());
  cluster.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/coordinator"));
  std::ofstream(folder_ + "/coordinator") << "127.0.0.1:4001\n";
  EXPECT_EQ(RunningClusterAddress(folder_), std::nullopt);
}

// The folder has one owner, and the second is told who that is.
TEST_F(CoordinatorAddressTest, AFolderHasOneOwner) {
  const absl::StatusOr<ClusterFolder> first = ClusterFolder::Own(folder_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ClusterFolder::Own(folder_).status(),
            absl::AlreadyExistsError(absl::StrCat("another `hooke up` (pid ", getpid(), ") runs from ", folder_,
                                                  "; stop it, or choose another folder with --state-dir")));
}

// Addresses that are none are refused, and the message names where they came from.
TEST_F(CoordinatorAddressTest, MalformedAddresses) {
  for (const char* good : {"a:1", "10.0.0.1:65535", "[::1]:7411", "node-1.cluster_a:80"})
    EXPECT_TRUE(CheckHostPort(good).ok()) << good;
  for (const char* bad :
       {"", "a", "a:", ":1", "a:0", "a:65536", "a:b", "a b:1", "::1:7411", "unix:/tmp/x", "a:1:2", "[]:1"}) {
    EXPECT_FALSE(CheckHostPort(bad).ok()) << bad;
  }
  EXPECT_EQ(ChooseCoordinator({"", "nonsense", ""}).status(),
            absl::InvalidArgumentError("HOOKE_COORDINATOR: \"nonsense\" is not HOST:PORT, for example 127.0.0.1:7411"));
}

}  // namespace
}  // namespace hooke
