// `hooke doctor` and `hooke top` on this machine, with a real cluster that has a token: when all is well, with a wrong
// token, with a coordinator that is stopped, and with none.

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/end_to_end/cluster.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

// The doctor's own limits are 17 seconds of hanging commands, 3 for the connection and 6 for calls.
constexpr absl::Duration kDoctorLimit = absl::Seconds(30);

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ClusterOptions options;
    options.servers = 1;
    options.workers = 1;
    options.token = "2f6c1d5e90b7a3486f0c2b9d7e15a84c";
    auto cluster = Cluster::Start(options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  // Runs the doctor, and checks that its exit status is that of its findings.
  nlohmann::json Findings(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"doctor", "--output=json", "--state-dir", cluster_->folder()};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult result = cluster_->Hooke(arguments, kDoctorLimit);
    nlohmann::json json = nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object()) << result.output;
    if (!json.is_object()) return {};
    EXPECT_EQ(result.status, json["faults"] == 0 ? 0 : 1) << result.output;
    return json;
  }

  static nlohmann::json Named(const nlohmann::json& json, const std::string& check) {
    for (const nlohmann::json& one : json.value("findings", nlohmann::json::array())) {
      if (one["check"] == check) return one;
    }
    ADD_FAILURE() << "no finding about " << check << " in " << json.dump(1);
    return {{"level", ""}, {"found", ""}};
  }

  std::unique_ptr<Cluster> cluster_;
};

// On a machine and a cluster on which all is well there is no fault, and each part is looked at. No file is left.
TEST_F(DoctorTest, AllIsWell) {
  const nlohmann::json json = Findings({});
  EXPECT_EQ(json["faults"], 0) << json.dump(1);
  for (const char* check : {"programs", "MPI", "MPI start", "state folder", "token", "versions", "servers", "workers",
                            "cluster clock", "jobs"}) {
    EXPECT_EQ(Named(json, check)["level"], "ok") << json.dump(1);
  }
  EXPECT_THAT(std::string(Named(json, "coordinator")["found"]), HasSubstr(cluster_->server_address(0)));
  const std::string port = cluster_->server_address(0).substr(cluster_->server_address(0).rfind(':') + 1);
  EXPECT_THAT(std::string(Named(json, "port " + port)["found"]), HasSubstr("hooke-server (pid "));
  EXPECT_EQ(cluster_->Hooke({"doctor", "--no-such-flag"}).status, 2);
  for (const auto& file : std::filesystem::directory_iterator(cluster_->folder())) {
    EXPECT_FALSE(absl::StartsWith(file.path().filename().string(), ".hooke-doctor")) << file.path();
  }
  const ProgramResult top = cluster_->Hooke({"top", "--interval=0.1", "--count=2"});
  EXPECT_EQ(top.status, 0) << top.output;
  EXPECT_THAT(top.output, HasSubstr("workers: 1, 0/2 slots in use; servers: 1"));
  EXPECT_THAT(top.output, HasSubstr(absl::StrCat("\n", cluster_->server_address(0), "  alive ")));
}

// A wrong token is a fault of its own. So is a file that does not exist, or that others can read.
TEST_F(DoctorTest, WrongToken) {
  const std::string other = cluster_->WritePrivateFile("other", "0123456789abcdef\n");
  nlohmann::json token = Named(Findings({"--token-file", other}), "token");
  EXPECT_EQ(token["level"], "fault");
  EXPECT_THAT(std::string(token["found"]), HasSubstr("this is not the token of this cluster"));
  std::filesystem::permissions(other, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  token = Named(Findings({"--token-file", other}), "token");
  EXPECT_EQ(token["level"], "fault");
  EXPECT_THAT(std::string(token["found"]), HasSubstr("is open to others than its owner"));
  token = Named(Findings({"--token-file", other + ".none"}), "token");
  EXPECT_THAT(std::string(token["found"]), HasSubstr("does not exist"));
}

// A coordinator that is stopped, or gone, is a fault within the doctor's limits.
TEST_F(DoctorTest, StoppedCoordinator) {
  cluster_->SignalServer(0, SIGSTOP);
  nlohmann::json coordinator = Named(Findings({}), "coordinator");
  EXPECT_EQ(coordinator["level"], "fault");
  EXPECT_THAT(std::string(coordinator["found"]), HasSubstr("no answer within 3s"));
  EXPECT_THAT(coordinator["advice"].dump(), HasSubstr("kill -CONT"));
  cluster_->SignalServer(0, SIGKILL);
  ASSERT_TRUE(cluster_->AwaitServerEnd(0).ok());
  coordinator = Named(Findings({}), "coordinator");
  EXPECT_EQ(coordinator["level"], "fault");
  EXPECT_THAT(std::string(coordinator["found"]), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace hooke
