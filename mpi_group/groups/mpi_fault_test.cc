// Tests with ranks that are processes and are killed or stopped in mid-collective. Usage:
//   mpi_fault_test PROGRAM MPIRUN...   (PROGRAM is mpi_fault_rank)

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

using testing::_;
using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr int kDeadlineMs = 1500;
constexpr int kLongDeadlineMs = 20000;  // For tests that must end before their deadline.

std::vector<std::string>& CommandLine() {
  static auto* const words = new std::vector<std::string>;
  return *words;
}

// The reason for skipping the tests in which survivors name a killed rank. KilledRankEndsTheGroup runs anyway.
constexpr char kEndsSurvivors[] =
    "MPICH's mpirun ends all ranks when one is killed, also with -disable-auto-cleanup; build with Open MPI";
bool EndsSurvivors() { return absl::StrContains(CommandLine()[1], "mpich"); }

// Returns true if happened() becomes true in time.
bool Await(absl::Duration duration, const std::function<bool()>& happened) {
  for (const absl::Time deadline = absl::Now() + duration; absl::Now() < deadline;
       absl::SleepFor(absl::Milliseconds(5))) {
    if (happened()) return true;
  }
  return happened();
}

bool Gone(pid_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

// mpirun and its ranks, with their own folder. The destructor ends and removes everything.
class RunningGroup {
 public:
  struct Options {
    // How values travel between ranks: "shared" memory, "messages" of MPI, or "sockets". "two-level": sockets between
    // nodes of two ranks, and values in memory that the ranks of a node share. "two-level-private": sockets between
    // nodes of two ranks, and values in ordinary memory.
    std::string values = "shared";
    std::string error = "";       // The --error of mpi_fault_rank.
    int reports = kRanks - 1;     // Number of reports to expect.
    bool outlives_ranks = false;  // If true, mpirun lets the others go on when a rank dies.
    int deadline_ms = kDeadlineMs;
    int ranks = kRanks;
  };

  explicit RunningGroup(const Options& options) : folder_(MakeFolder()), size_(options.ranks) {
    std::vector<std::string> words(CommandLine().begin() + 1, CommandLine().end());
    if (options.outlives_ranks) words.push_back("--enable-recovery");
    words.insert(words.end(), {"-n", absl::StrCat(size_), CommandLine().front(), "--folder", folder_, "--deadline-ms",
                               absl::StrCat(options.deadline_ms), "--reports", absl::StrCat(options.reports)});
    words.insert(words.end(), {"--values", options.values});
    if (!options.error.empty()) words.insert(words.end(), {"--error", options.error});
    Start(words);
    AwaitSumming();
  }

  ~RunningGroup() {
    if (mpirun_ > 0) {
      kill(-mpirun_, SIGKILL);
      waitpid(mpirun_, nullptr, 0);
    }
    for (const auto& [rank, process] : ranks_) kill(process, SIGKILL);
    close(output_);
    std::filesystem::remove_all(folder_);
  }

  // The process of each rank that has completed some rounds.
  const std::map<int, pid_t>& ranks() const { return ranks_; }

  // The error of each rank that has reported.
  std::map<int, std::string> Reports() const {
    std::map<int, std::string> reports;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() != ".report") continue;
      std::stringstream text;
      text << std::ifstream(file.path()).rdbuf();
      int rank = -1;
      if (absl::SimpleAtoi(file.path().stem().string(), &rank)) reports[rank] = text.str();
    }
    return reports;
  }

  // The error of each rank that has reported, without the victim's. When the first rank ends, mpirun wakes the victim
  // to end it too. The victim may then manage to report as well.
  std::map<int, std::string> ReportsOfSurvivors() const {
    std::map<int, std::string> reports = Reports();
    reports.erase(kVictim);
    return reports;
  }

  // mpirun's exit code; -1 if it does not end in time.
  int AwaitEnd(absl::Duration duration) {
    int state = 0;
    // Read mpirun's output, or a full pipe would keep mpirun from ending.
    if (!Await(duration, [&] {
          ReadSome(absl::ZeroDuration());
          return waitpid(mpirun_, &state, WNOHANG) == mpirun_;
        })) {
      return -1;
    }
    mpirun_ = 0;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }

 private:
  static std::string MakeFolder() {
    std::string path = absl::StrCat(testing::TempDir(), "/mpi-fault-XXXXXX");
    return mkdtemp(path.data());
  }

  void Start(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    output_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&files, ends[0]);
    posix_spawn_file_actions_addclose(&files, ends[1]);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    EXPECT_EQ(posix_spawnp(&mpirun_, arguments[0], &files, &attributes, arguments.data(), environ), 0);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
  }

  void ReadSome(absl::Duration wait) {
    pollfd readable = {output_, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) <= 0) return;
    char bytes[4096];
    const ssize_t size = read(output_, bytes, sizeof(bytes));
    if (size > 0) text_.append(bytes, size);
  }

  void AwaitSumming() {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (ranks_.size() < size_ && absl::Now() < deadline) {
      ReadSome(absl::Milliseconds(100));
      std::istringstream lines(text_.substr(0, text_.rfind('\n') + 1));
      std::string word;
      while (lines >> word) {
        int rank = 0;
        pid_t process = 0;
        if (word == "summing" && lines >> rank >> process) ranks_[rank] = process;
      }
    }
    EXPECT_EQ(ranks_.size(), size_) << text_;
  }

  const std::string folder_;
  const size_t size_;
  pid_t mpirun_ = 0;
  int output_ = -1;
  std::string text_;
  std::map<int, pid_t> ranks_;
};

// Expects that no process of the ranks and no shared memory of theirs is left.
void ExpectNothingLeft(const std::map<int, pid_t>& ranks) {
  for (const auto& [rank, process] : ranks) {
    EXPECT_TRUE(Await(absl::Seconds(10), [process = process] { return Gone(process); }))
        << "rank " << rank << " is still there";
    for (const auto& segment : std::filesystem::directory_iterator("/dev/shm")) {
      EXPECT_THAT(segment.path().filename().string(), Not(HasSubstr(absl::StrCat("hooke-", process, "-"))));
    }
  }
}

const absl::Duration kToReport = absl::Milliseconds(kDeadlineMs) + absl::Seconds(5);

// If a rank is stopped in mid-collective, every other rank names it soon after the deadline, in whichever way values
// travel. Then all processes end.
TEST(MpiFaultTest, StoppedRankIsNamedByAll) {
  for (const char* values : {"shared", "messages", "sockets"}) {
    RunningGroup run({values});
    ASSERT_EQ(run.ranks().size(), kRanks);
    kill(run.ranks().at(kVictim), SIGSTOP);
    EXPECT_TRUE(Await(kToReport, [&] { return run.ReportsOfSurvivors().size() == kRanks - 1; }));
    EXPECT_THAT(run.ReportsOfSurvivors(), Each(Pair(_, HasSubstr("DEADLINE_EXCEEDED: "))));
    EXPECT_THAT(run.ReportsOfSurvivors(),
                Each(Pair(_, HasSubstr("(deadline 1.5s): waited until the deadline for rank 1, which did not come or "
                                       "got stuck in call "))));
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// A rank that is killed ends its whole group, with an exit code that says so.
TEST(MpiFaultTest, KilledRankEndsTheGroup) {
  for (const char* values : {"shared", "messages", "sockets"}) {
    RunningGroup run({values});
    ASSERT_EQ(run.ranks().size(), kRanks);
    kill(run.ranks().at(kVictim), SIGKILL);
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// If mpirun lets them live, the survivors of a killed rank name it. In shared memory they see the end of its process,
// over sockets the end of its connections, long before the deadline. With MPI's messages they have only the deadline.
TEST(MpiFaultTest, KilledRankIsNamedByAll) {
  if (EndsSurvivors()) GTEST_SKIP() << kEndsSurvivors;
  for (const std::string values : {"shared", "messages", "sockets"}) {
    SCOPED_TRACE(values);
    const bool silent = values == "messages";
    RunningGroup run({values, "", kRanks - 1, /*outlives_ranks=*/true, silent ? kDeadlineMs : kLongDeadlineMs});
    ASSERT_EQ(run.ranks().size(), kRanks);
    const absl::Time killed = absl::Now();
    kill(run.ranks().at(kVictim), SIGKILL);
    EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kRanks - 1; }));
    std::cout << values << ": named after " << absl::Now() - killed << "\n";
    EXPECT_THAT(run.Reports(), Each(Pair(_, HasSubstr(silent ? "DEADLINE_EXCEEDED: " : "UNAVAILABLE: "))));
    EXPECT_THAT(run.Reports(), Each(Pair(_, HasSubstr(silent ? "for rank 1, which did not come or got stuck in call "
                                                             : "lost rank 1 in call "))));
    if (values == "shared") {
      EXPECT_THAT(run.Reports(), Each(Pair(_, HasSubstr("whose process has ended"))));
    }
    // Open MPI's mpirun reports success here, as it was told to ignore dead ranks.
    EXPECT_GE(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// In shared memory the survivors see a killed rank's end within a second. A busy machine may delay them, so the fastest
// of three groups counts.
TEST(MpiFaultTest, AKilledRankIsSeenWithinASecond) {
  if (EndsSurvivors()) GTEST_SKIP() << kEndsSurvivors;
  absl::Duration fastest = absl::InfiniteDuration();
  for (int i = 0; i < 3 && fastest >= absl::Seconds(1); ++i) {
    RunningGroup run({"shared", "", kRanks - 1, /*outlives_ranks=*/true, kLongDeadlineMs});
    ASSERT_EQ(run.ranks().size(), kRanks);
    const absl::Time killed = absl::Now();
    kill(run.ranks().at(kVictim), SIGKILL);
    EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kRanks - 1; }));
    fastest = std::min(fastest, absl::Now() - killed);
    EXPECT_GE(run.AwaitEnd(absl::Seconds(20)), 0);
  }
  EXPECT_LT(fastest, absl::Seconds(1));
}

// Two nodes of two ranks: ranks that share memory with the wrong rank and ranks that only get messages from its node
// report the same error.
constexpr int kTwoLevelRanks = 4;

constexpr const char* kTwoLevelValues[] = {"two-level", "two-level-private"};

RunningGroup::Options OnTwoLevels(const std::string& values, const std::string& error, int reports) {
  RunningGroup::Options options;
  options.values = values;
  options.error = error;
  options.reports = reports;
  options.ranks = kTwoLevelRanks;
  return options;
}

// If a rank is stopped in mid-collective, the ranks of its own node and of the other node name it.
TEST(MpiTwoLevelFaultTest, StoppedRankIsNamedByAll) {
  for (const char* values : kTwoLevelValues) {
    SCOPED_TRACE(values);
    RunningGroup run(OnTwoLevels(values, "", kTwoLevelRanks - 1));
    ASSERT_EQ(run.ranks().size(), kTwoLevelRanks);
    kill(run.ranks().at(kVictim), SIGSTOP);
    EXPECT_TRUE(Await(kToReport, [&] { return run.ReportsOfSurvivors().size() == kTwoLevelRanks - 1; }));
    // Its own node waits for it in shared memory, the other node for its message.
    EXPECT_THAT(run.ReportsOfSurvivors(),
                Each(Pair(_, AllOf(HasSubstr("DEADLINE_EXCEEDED: "), ContainsRegex("waited .*for rank 1")))));
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// Ranks of its own node and of the other node name a rank that is killed, if mpirun lets them live.
TEST(MpiTwoLevelFaultTest, KilledRankIsNamedByAll) {
  if (EndsSurvivors()) GTEST_SKIP() << kEndsSurvivors;
  for (const char* values : kTwoLevelValues) {
    SCOPED_TRACE(values);
    RunningGroup::Options options = OnTwoLevels(values, "", kTwoLevelRanks - 1);
    options.outlives_ranks = true;
    options.deadline_ms = kLongDeadlineMs;
    RunningGroup run(options);
    ASSERT_EQ(run.ranks().size(), kTwoLevelRanks);
    kill(run.ranks().at(kVictim), SIGKILL);
    EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kTwoLevelRanks - 1; }));
    // Ranks learn it from the end of the killed process or of its connections.
    EXPECT_THAT(run.Reports(), Each(Pair(_, AllOf(HasSubstr("UNAVAILABLE: "), HasSubstr("lost rank 1")))));
    EXPECT_GE(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// A wrong size is reported at once. A skipped call is reported at the deadline, as the ranks of its node wait for each
// other in different places.
TEST(MpiTwoLevelFaultTest, WrongCallIsNamedOnEveryRank) {
  for (const auto& [error, wrong] :
       {std::pair<std::string, std::string>{"size", "all-reduce .mean. of 1048575 float32"}, {"skip", "barrier"}}) {
    RunningGroup::Options options = OnTwoLevels("two-level", error, kTwoLevelRanks);
    if (error == "size") options.deadline_ms = kLongDeadlineMs;
    RunningGroup run(options);
    EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kTwoLevelRanks; }));
    EXPECT_THAT(run.Reports(), Each(Pair(_, HasSubstr("INVALID_ARGUMENT: "))));
    EXPECT_THAT(run.Reports(),
                Each(Pair(_, ContainsRegex(
                                 absl::StrCat("rank 1 in call [0-9]+: ", wrong, "[^,;]*, rank 0, 2, 3 in call [0-9]+: ",
                                              "all-reduce .mean. of 1048576 float32[^,;]*; all ranks must call")))));
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

// A rank that comes after the others have given up on it gets the same error as the others.
TEST(MpiFaultTest, LateRankIsToldTheSame) {
  for (const char* values : {"shared", "messages", "sockets"}) {
    RunningGroup run({values, "late", kRanks});
    EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kRanks; }));
    EXPECT_THAT(run.Reports(),
                Each(Pair(_, AllOf(HasSubstr("DEADLINE_EXCEEDED: "), HasSubstr("waited until the deadline for rank 1"),
                                   HasSubstr(": all-reduce (mean) of 1048576 float32")))));
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

struct WrongCall {
  std::string error;
  std::string wrong;  // The victim's call.
  std::string right;
};

class MpiWrongCallTest : public testing::TestWithParam<std::tuple<WrongCall, std::string>> {};

// If one rank makes a wrong call, every rank's error names that call and the call of the other ranks, long before the
// deadline.
TEST_P(MpiWrongCallTest, IsNamedOnEveryRank) {
  const auto& [wrong, values] = GetParam();
  RunningGroup run({values, wrong.error, kRanks, false, kLongDeadlineMs});
  EXPECT_TRUE(Await(kToReport, [&] { return run.Reports().size() == kRanks; }));
  EXPECT_THAT(run.Reports(), Each(Pair(_, HasSubstr("INVALID_ARGUMENT: "))));
  EXPECT_THAT(run.Reports(), Each(Pair(_, ContainsRegex(absl::StrCat("rank 1 in call [0-9]+: ", wrong.wrong,
                                                                     ", rank 0, 2 in call [0-9]+: ", wrong.right,
                                                                     "; all ranks must call the same operations")))));
  EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
  ExpectNothingLeft(run.ranks());
}

const WrongCall kWrongCalls[] = {
    {"size", "all-reduce .mean. of 1048575 float32[^,;]*", "all-reduce .mean. of 1048576 float32[^,;]*"},
    {"type", "all-reduce .mean. of 1048576 int32[^,;]*", "all-reduce .mean. of 1048576 float32[^,;]*"},
    {"op", "all-reduce .max. of 1048576 float32[^,;]*", "all-reduce .mean. of 1048576 float32[^,;]*"},
    {"root", "broadcast of 100 float32[^,;]* with root 1", "broadcast of 100 float32[^,;]* with root 0"},
    {"skip", "barrier[^,;]*", "all-reduce .mean. of 1048576 float32[^,;]*"},
    {"order", "broadcast of 100 float32[^,;]* with root 0", "barrier[^,;]*"},
};

INSTANTIATE_TEST_SUITE_P(All, MpiWrongCallTest,
                         testing::Combine(testing::ValuesIn(kWrongCalls),
                                          testing::Values("shared", "messages", "sockets")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).error, "_", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  hooke::CommandLine().assign(argv + 1, argv + argc);
  return RUN_ALL_TESTS();
}
