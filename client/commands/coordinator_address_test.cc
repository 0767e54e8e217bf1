#include "client/commands/coordinator_address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/local_cluster/cluster_folder.h"

namespace hooke {
namespace {

class CoordinatorAddressTest : public ::testing::Test {
 protected:
  ~CoordinatorAddressTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/coordinator_address_test");
};

// The flag is chosen first, then the environment, then a running local cluster, then the default.
TEST_F(CoordinatorAddressTest, FlagThenEnvironmentThenLocalCluster) {
  EXPECT_EQ(*ChooseCoordinator({"", "", ""}), "127.0.0.1:7411");
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:7411");
  absl::StatusOr<ClusterFolder> cluster = ClusterFolder::Own(folder_, "hooke up");
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  // The cluster is still starting, so the default is chosen.
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:7411");
  ASSERT_TRUE(cluster->Announce("127.0.0.1:4001").ok());
  EXPECT_EQ(*ChooseCoordinator({"", "", folder_}), "127.0.0.1:4001");
  EXPECT_EQ(*ChooseCoordinator({"", "b:2", folder_}), "b:2");
  EXPECT_EQ(*ChooseCoordinator({"a:1", "b:2", folder_}), "a:1");
}

// The address that a killed `up` has left is ignored. An `up` that ends normally removes its address.
TEST_F(CoordinatorAddressTest, AStaleClusterIsNotUsed) {
  std::optional<ClusterFolder> cluster(*ClusterFolder::Own(folder_, "hooke up"));
  ASSERT_TRUE(cluster->Announce("127.0.0.1:4001").ok());
  cluster.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/coordinator"));
  std::ofstream(folder_ + "/coordinator") << "127.0.0.1:4001\n";
  EXPECT_EQ(RunningClusterAddress(folder_), std::nullopt);
}

// A folder has one owner. A second `up` is refused, and the error has the owner's pid.
TEST_F(CoordinatorAddressTest, AFolderHasOneOwner) {
  const absl::StatusOr<ClusterFolder> first = ClusterFolder::Own(folder_, "hooke up");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ClusterFolder::Own(folder_, "hooke up").status(),
            absl::AlreadyExistsError(absl::StrCat("another `hooke up` (pid ", getpid(), ") runs from ", folder_,
                                                  "; stop it, or choose another folder with --state-dir")));
}

// Malformed addresses are refused, and the message says where they came from.
TEST_F(CoordinatorAddressTest, MalformedAddresses) {
  EXPECT_EQ(ChooseCoordinator({"a:0", "", ""}).status(),
            absl::InvalidArgumentError(
                "--coordinator: \"a:0\" has port 0, at which nobody can be reached, allowed is 1 to 65535"));
  EXPECT_EQ(
      ChooseCoordinator({"", "nonsense", ""}).status(),
      absl::InvalidArgumentError("HOOKE_COORDINATOR: \"nonsense\" is no address, allowed is HOST:PORT or [IPv6]:PORT"));
}

}  // namespace
}  // namespace hooke
