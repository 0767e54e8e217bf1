// Tests the program hooke-bench under a real mpirun.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/tuning.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;

std::string program;

struct Result {
  int exit_code = -1;  // 128 + signal if a signal ended it.
  std::string out;
  std::string err;
};

class HookeBenchTest : public ::testing::Test {
 protected:
  HookeBenchTest() { std::filesystem::create_directories(folder_); }
  ~HookeBenchTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void Start(std::vector<std::string> arguments, const std::string& path = "PATH=/usr/local/bin:/usr/bin:/bin") {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    std::string variable = path;
    char* environment[] = {variable.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    ASSERT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, pointers.data(), environment), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  Result Wait() {
    Result result;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = Read("out");
    result.err = Read("err");
    return result;
  }

  Result Run(const std::vector<std::string>& arguments, const std::string& path = "PATH=/usr/local/bin:/usr/bin:/bin") {
    Start(arguments, path);
    return Wait();
  }

  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/hooke_bench_", getpid());
  pid_t pid_ = -1;
};

std::set<std::string> Leftovers() {
  std::set<std::string> found;
  for (const char* folder : {"/tmp", "/dev/shm"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().filename().string().rfind("hooke-bench-", 0) == 0) found.insert(entry.path());
    }
  }
  return found;
}

// Two ranks measure small sizes. Every operation has times and a default, and the result is a valid tuning.
TEST_F(HookeBenchTest, TuneMakesATuning) {
  const std::set<std::string> before = Leftovers();
  const Result result = Run({"tune", "--ranks", "2", "--bytes-max", "1024", "--seconds", "20"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document["topology"]["ranks"], 2);
  EXPECT_EQ(document["cells"], document["cells_planned"]);
  std::set<std::string> operations;
  for (const nlohmann::json& one : document["measurements"]) {
    EXPECT_GT(one["median_us"].get<double>(), 0);
    if (one["default"].get<bool>()) operations.insert(one["operation"].get<std::string>());
  }
  EXPECT_EQ(operations, (std::set<std::string>{"all-gather", "all-reduce", "broadcast", "reduce", "reduce-scatter"}));
  const absl::StatusOr<Tuning> tuning = ParseTuning(document["tuning"].get<std::string>());
  ASSERT_TRUE(tuning.ok()) << tuning.status();
  EXPECT_EQ(tuning->rules.size(), document["rules"]);
  EXPECT_EQ(Leftovers(), before);
}

// A signal during the measurement ends the ranks, and no file is left.
TEST_F(HookeBenchTest, SignalEndsTheRanks) {
  const std::set<std::string> before = Leftovers();
  Start({"tune", "--ranks", "2", "--seconds", "600", "--bytes-max", "1048576"});
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (Read("err").find("measuring all-reduce") == std::string::npos && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_THAT(Read("err"), HasSubstr("measuring all-reduce"));
  kill(pid_, SIGTERM);
  const Result result = Wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("interrupted"));
  EXPECT_EQ(Leftovers(), before);
}

// If there is no mpirun, the error says what to install.
TEST_F(HookeBenchTest, NoMpirun) {
  const Result result = Run({"tune"}, "PATH=/nowhere");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("on the PATH; install "));
  EXPECT_THAT(Run({"tune", "--mpirun", "/nowhere/mpirun"}).err, HasSubstr("/nowhere/mpirun: no such program"));
}

// `explain` describes the choices of the given tuning. It refuses a wrong tuning and gives the reason.
TEST_F(HookeBenchTest, Explain) {
  std::ofstream(folder_ + "/tuning.json") << R"({"rules": [{"operation": "all-reduce", "algorithm": "ring"}]})";
  std::ofstream(folder_ + "/wrong.json") << R"({"rulez": []})";
  const Result result = Run({"explain", "--ranks", "4", "--tuning", folder_ + "/tuning.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document["choices"][0]["algorithm"], "ring");
  EXPECT_EQ(document["choices"][0]["bytes_from"], 4);
  EXPECT_FALSE(document["choices"][0].contains("bytes_to"));
  EXPECT_FALSE(document["choices"][0].contains("between"));
  const Result wrong = Run({"explain", "--tuning", folder_ + "/wrong.json"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.json: tuning: unknown key \"rulez\""));
  EXPECT_THAT(Run({"explain", "--ranks", "2", "--nodes", "3"}).err, HasSubstr("--nodes 3 is more than --ranks 2"));
  EXPECT_THAT(Run({"explain", "--tuning", folder_ + "/none.json"}).err, HasSubstr("none.json: cannot be read"));
}

// `explain` also answers for more ranks than a machine could start.
TEST_F(HookeBenchTest, ExplainsTheMostRanks) {
  const Result result = Run({"explain", "--ranks", "16384", "--nodes", "16384"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["choices"][0]["algorithm"], "recursive-doubling");
  EXPECT_EQ(Run({"explain", "--ranks", "16385"}).exit_code, 2);
}

// For several nodes `explain` also names the algorithm between the nodes. For private values it changes with the size,
// while the all-reduce remains two-level.
TEST_F(HookeBenchTest, ExplainNamesTheAlgorithmBetweenNodes) {
  const Result result = Run({"explain", "--ranks", "8", "--nodes", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = nlohmann::json::parse(result.out);
  std::vector<std::string> between;
  for (const nlohmann::json& one : document["choices"]) {
    if (one["operation"] != "all-reduce" || one["values"] != "private" || one.contains("of")) continue;
    EXPECT_EQ(one["algorithm"], "two-level");
    between.push_back(absl::StrCat("from ", one["bytes_from"].get<int>(), ": ",
                                   one["between"]["algorithm"].get<std::string>(), " of ", one["drivers"].get<int>()));
  }
  EXPECT_EQ(between, (std::vector<std::string>{"from 4: recursive-doubling of 1", "from 32768: recursive-doubling of 4",
                                               "from 131072: halving-doubling of 4", "from 2097152: ring of 4"}));
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  hooke::program = std::filesystem::absolute(argv[1]);
  return RUN_ALL_TESTS();
}
