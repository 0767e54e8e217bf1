// Ranks that are processes, killed or stopped in mid-collective:
//   mpi_fault_test PROGRAM MPIRUN...   (PROGRAM is mpi_fault_rank)

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hooke {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kVictim = 1;
constexpr int kDeadlineMs = 700;

std::vector<std::string>& CommandLine() {
  static auto* const words = new std::vector<std::string>;
  return *words;
}

// Whether `happened` becomes true in time.
bool Await(absl::Duration duration, const std::function<bool()>& happened) {
  for (const absl::Time deadline = absl::Now() + duration; absl::Now() < deadline;
       absl::SleepFor(absl::Milliseconds(5))) {
    if (happened()) return true;
  }
  return happened();
}

bool Gone(pid_t process) { return kill(process, 0) != 0 && errno == ESRCH; }

// mpirun and its ranks, in a folder of their own. Nothing of it outlives this object.
class RunningGroup {
 public:
  explicit RunningGroup(bool shared) : folder_(MakeFolder()) {
    std::vector<std::string> words(CommandLine().begin() + 1, CommandLine().end());
    for (const std::string& word :
         {std::string("-n"), absl::StrCat(kRanks), CommandLine().front(), std::string("--folder"), folder_,
          std::string("--deadline-ms"), absl::StrCat(kDeadlineMs)}) {
      words.push_back(word);
    }
    if (shared) words.push_back("--shared");
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

  // Process of each rank that has summed for a while.
  const std::map<int, pid_t>& ranks() const { return ranks_; }

  // What the survivors were told, of those that have reported. When the first one ends, mpirun wakes the victim to end
  // it too, and it may get as far as a report of its own, which says nothing.
  std::vector<std::string> Reports() const {
    std::vector<std::string> reports;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      if (file.path().extension() != ".report" || file.path().stem() == absl::StrCat(kVictim)) continue;
      std::stringstream text;
      text << std::ifstream(file.path()).rdbuf();
      reports.push_back(text.str());
    }
    return reports;
  }

  // mpirun's exit code; -1 if it does not end in time.
  int AwaitEnd(absl::Duration duration) {
    int state = 0;
    // Its output is read on, or it could not end.
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
    while (ranks_.size() < kRanks && absl::Now() < deadline) {
      ReadSome(absl::Milliseconds(100));
      std::istringstream lines(text_.substr(0, text_.rfind('\n') + 1));
      std::string word;
      while (lines >> word) {
        int rank = 0;
        pid_t process = 0;
        if (word == "summing" && lines >> rank >> process) ranks_[rank] = process;
      }
    }
    EXPECT_EQ(ranks_.size(), kRanks) << text_;
  }

  const std::string folder_;
  pid_t mpirun_ = 0;
  int output_ = -1;
  std::string text_;
  std::map<int, pid_t> ranks_;
};

void ExpectNothingLeft(const std::map<int, pid_t>& ranks) {
  for (const auto& [rank, process] : ranks) {
    EXPECT_TRUE(Await(absl::Seconds(10), [process = process] { return Gone(process); }))
        << "rank " << rank << " is still there";
  }
}

// In shared memory, a rank stopped in mid-collective is named by every survivor soon after the deadline, and all
// processes end.
TEST(MpiFaultTest, StoppedRankIsNamedInSharedMemory) {
  RunningGroup run(/*shared=*/true);
  ASSERT_EQ(run.ranks().size(), kRanks);
  kill(run.ranks().at(kVictim), SIGSTOP);
  EXPECT_TRUE(Await(absl::Milliseconds(kDeadlineMs + 5000), [&] { return run.Reports().size() == kRanks - 1; }));
  EXPECT_THAT(run.Reports(), Each(HasSubstr("DEADLINE_EXCEEDED: all-reduce of 1048576 values")));
  EXPECT_THAT(run.Reports(), Each(HasSubstr("waited until the deadline for rank 1")));
  EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
  ExpectNothingLeft(run.ranks());
}

// By messages, every survivor reports as soon; those next to the stopped rank name it, others name whom they waited
// for.
TEST(MpiFaultTest, StoppedRankIsNamedByItsNeighbour) {
  RunningGroup run(/*shared=*/false);
  ASSERT_EQ(run.ranks().size(), kRanks);
  kill(run.ranks().at(kVictim), SIGSTOP);
  EXPECT_TRUE(Await(absl::Milliseconds(kDeadlineMs + 5000), [&] { return run.Reports().size() == kRanks - 1; }));
  EXPECT_THAT(run.Reports(), Each(HasSubstr("DEADLINE_EXCEEDED: all-reduce of 1048576 values")));
  EXPECT_THAT(run.Reports(), testing::Contains(HasSubstr("waited for rank 1")));
  EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
  ExpectNothingLeft(run.ranks());
}

// A rank that is killed ends its whole group, with an exit code that says so.
TEST(MpiFaultTest, KilledRankEndsTheGroup) {
  for (bool shared : {true, false}) {
    RunningGroup run(shared);
    ASSERT_EQ(run.ranks().size(), kRanks);
    kill(run.ranks().at(kVictim), SIGKILL);
    EXPECT_GT(run.AwaitEnd(absl::Seconds(20)), 0);
    ExpectNothingLeft(run.ranks());
  }
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return 2;
  hooke::CommandLine().assign(argv + 1, argv + argc);
  return RUN_ALL_TESTS();
}
