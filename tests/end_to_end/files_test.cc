// Jobs that bring files, with real daemons and a real mpirun: a script and the module that it imports reach two workers
// whose folders have neither, a second submission uploads nothing, and a changed file is uploaded alone.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/launch/process.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] =
    "name: own\n"
    "command: [python3, train.py]\n"
    "files: [train.py, helper, data/words.txt]\n"
    "groups: {count: 2, ranks: 1}\n";

class FilesTest : public ::testing::Test {
 protected:
  struct Result {
    int status = -1;
    std::string output;
  };

  FilesTest() {
    fs::create_directories(folder_ + "/bin");
    for (const char* program : {"client/hooke", "server/hooke-server", "worker/daemon/hooke-worker"}) {
      fs::copy_file(program, fs::path(folder_) / "bin" / fs::path(program).filename());
    }
    // No job of this test has a built-in network.
    Write("bin/hooke-rank", "#!/bin/sh\nexit 1\n");
    Write("bin/wrapped", "#!/bin/sh\necho through the wrapper\nexec python3 \"$@\"\n");
    for (const char* program : {"/bin/hooke-rank", "/bin/wrapped"}) {
      fs::permissions(folder_ + program, fs::perms::owner_all);
    }
    Write(
        "work/train.py",
        "import os\nimport helper.words\nprint('words', helper.words.count('data/words.txt'), sorted(os.listdir()))\n");
    Write("work/helper/__init__.py", "");
    Write("work/helper/words.py", "def count(path):\n    return len(open(path).read().split())\n");
    Write("work/data/words.txt", "one two three");
    Write("work/data/left_out.txt", "x");
    Write("work/job.yaml", kJob);
  }
  ~FilesTest() override {
    workers_.clear();
    server_.reset();
    fs::remove_all(folder_);
  }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + path).parent_path());
    std::ofstream(folder_ + "/" + path) << text;
  }

  std::unique_ptr<Process> Start(std::vector<std::string> arguments, std::function<void(absl::string_view)> on_line) {
    ProcessOptions options;
    options.argv = std::move(arguments);
    options.argv[0] = folder_ + "/bin/" + options.argv[0];
    // Without this variable Python would write its caches beside the sources, and they would be uploaded as well.
    options.environment = {"HOME=" + folder_, "PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"};
    options.folder = folder_;
    options.on_line = std::move(on_line);
    absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
    EXPECT_TRUE(process.ok()) << process.status();
    return process.ok() ? *std::move(process) : nullptr;
  }

  // Starts a daemon and returns what it writes into its ready file.
  std::string StartDaemon(const std::string& name, std::vector<std::string> arguments,
                          std::unique_ptr<Process>& process) {
    const std::string ready = folder_ + "/" + name + ".ready";
    arguments.push_back("--state-dir=" + folder_ + "/" + name);
    arguments.push_back("--ready-file=" + ready);
    process = Start(std::move(arguments), [this, name](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      absl::StrAppend(&daemons_, name, ": ", line, "\n");
    });
    for (const absl::Time end = absl::Now() + absl::Seconds(60); absl::Now() < end && !fs::exists(ready);) {
      if (process->Wait(SteadyTime() + absl::Milliseconds(20)).has_value()) break;
    }
    std::string text;
    std::ifstream(ready) >> text;
    EXPECT_FALSE(text.empty()) << name << " did not start\n" << Daemons();
    return text;
  }

  void StartCluster(const std::vector<std::string>& server_flags = {}) {
    std::vector<std::string> server = {"hooke-server", "--listen=127.0.0.1:0"};
    server.insert(server.end(), server_flags.begin(), server_flags.end());
    coordinator_ = StartDaemon("server", server, server_);
    for (const char* site : {"a", "b"}) {
      StartDaemon(absl::StrCat("worker-", site),
                  {"hooke-worker", "--coordinator=" + coordinator_, absl::StrCat("--name=w-", site),
                   absl::StrCat("--site=", site), "--slots=1", "--allow-commands"},
                  workers_.emplace_back());
    }
  }

  Result Hooke(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "hooke");
    arguments.push_back("--coordinator=" + coordinator_);
    Result result;
    absl::Mutex mutex;
    const std::unique_ptr<Process> process = Start(std::move(arguments), [&](absl::string_view line) {
      absl::MutexLock lock(&mutex);
      absl::StrAppend(&result.output, line, "\n");
    });
    result.status = process->Wait(SteadyTime() + absl::Seconds(120)).value_or(ProcessEnd{-1, 0}).exit_status;
    absl::MutexLock lock(&mutex);
    return result;
  }
  Result Submit() { return Hooke({"submit", folder_ + "/work/job.yaml", "--watch"}); }
  std::string Log(const std::string& job) { return Hooke({"logs", job}).output; }

  std::string Daemons() {
    absl::MutexLock lock(&mutex_);
    return daemons_;
  }

  const std::string folder_ = absl::StrCat("/tmp/hooke-files-test-", getpid());
  std::string coordinator_;
  std::unique_ptr<Process> server_;
  std::vector<std::unique_ptr<Process>> workers_;
  absl::Mutex mutex_;
  std::string daemons_ ABSL_GUARDED_BY(mutex_);
};

// Two groups on two workers get the script, the package beside it and one file of a folder. Later submissions send only
// what has changed, and workers fetch only that.
TEST_F(FilesTest, AScriptAndItsModuleReachTwoWorkers) {
  StartCluster();
  const Result first = Submit();
  EXPECT_EQ(first.status, 0) << first.output << Log("own-1") << Daemons();
  EXPECT_THAT(first.output, HasSubstr("hooke: 4 files, "));
  EXPECT_THAT(first.output, HasSubstr("for each group; uploaded 4 of 4, "));
  const std::string log = Log("own-1");
  for (const char* group : {"group 0", "group 1"}) {
    EXPECT_THAT(log, HasSubstr(absl::StrCat(group, " worker: fetched 4 of 4 files, ")));
    EXPECT_THAT(log, HasSubstr(absl::StrCat(group, " rank 0: words 3 ['data', 'helper', 'train.py']")));
  }
  EXPECT_THAT(Hooke({"jobs", "own-1"}).output, ::testing::ContainsRegex("files +4 files, "));

  const Result second = Submit();
  EXPECT_EQ(second.status, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("the coordinator has all of them"));
  EXPECT_THAT(Log("own-2"), HasSubstr("worker: fetched 0 of 4 files, 0 bytes, "));

  Write("work/data/words.txt", "one two three four");
  const Result third = Submit();
  EXPECT_EQ(third.status, 0) << third.output;
  EXPECT_THAT(third.output, HasSubstr("uploaded 1 of 4, "));
  EXPECT_THAT(Log("own-3"), AllOf(HasSubstr("rank 0: words 4"), HasSubstr("worker: fetched 1 of 4 files, ")));
  // The groups' copies are gone.
  for (const char* site : {"a", "b"}) {
    EXPECT_TRUE(fs::is_empty(absl::StrCat(folder_, "/worker-", site, "/groups")));
  }
}

// A site's interpreter replaces python3 at that site only. A site that no worker has is said, and is no error.
TEST_F(FilesTest, ASiteHasAnInterpreterOfItsOwn) {
  StartCluster();
  Write("work/job.yaml", absl::StrCat(kJob, "sites: {b: {interpreter: ", folder_,
                                      "/bin/wrapped}, nowhere: {virtual_environment: /v}}\n"));
  const Result result = Submit();
  EXPECT_EQ(result.status, 0) << result.output << Log("own-1");
  EXPECT_THAT(result.output, HasSubstr("hooke: no worker is at site nowhere now"));
  const std::string log = Log("own-1");
  const size_t wrapped = log.find("through the wrapper");
  EXPECT_NE(wrapped, std::string::npos) << log;
  EXPECT_EQ(log.find("through the wrapper", wrapped + 1), std::string::npos) << log;
}

// Too large files are refused before anything is sent, with the line of the key.
TEST_F(FilesTest, TooLargeFilesAreRefused) {
  StartCluster({"--files-max-bytes=2000"});
  Write("work/data/words.txt", std::string(3000, 'x'));
  const Result result = Submit();
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, AllOf(HasSubstr("job.yaml:3: files: they have 3."),
                                   HasSubstr("a job may have 2.0 KiB (--files-max-bytes of the coordinator)")));
  Write("work/job.yaml", "name: own\ncommand: [python3, train.py]\nfiles: [train.py, missing]\n");
  EXPECT_THAT(Submit().output, HasSubstr("job.yaml:3: files: \"missing\" is not there in "));
}

// A worker that was killed has its cache again; a damaged entry is fetched again.
TEST_F(FilesTest, TheCacheStaysOverARestart) {
  StartCluster();
  EXPECT_EQ(Submit().status, 0);
  for (const std::unique_ptr<Process>& worker : workers_) {
    kill(worker->pid(), SIGKILL);
    ASSERT_TRUE(worker->Wait(SteadyTime() + absl::Seconds(30)).has_value());
  }
  workers_.clear();
  int damaged = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ + "/worker-a/files")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    if (text.str() != "one two three") continue;
    std::ofstream(entry.path()) << "one two thre!";
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  for (const char* site : {"a", "b"}) {
    fs::remove(absl::StrCat(folder_, "/worker-", site, ".ready"));
    StartDaemon(absl::StrCat("worker-", site),
                {"hooke-worker", "--coordinator=" + coordinator_, absl::StrCat("--name=w-", site),
                 absl::StrCat("--site=", site), "--slots=1", "--allow-commands"},
                workers_.emplace_back());
  }
  const Result result = Submit();
  EXPECT_EQ(result.status, 0) << result.output;
  const std::string log = Log("own-2");
  EXPECT_THAT(log, AllOf(HasSubstr("worker: fetched 1 of 4 files, 13 bytes"), HasSubstr("worker: fetched 0 of 4 files"),
                         HasSubstr("rank 0: words 3"), Not(HasSubstr("start 2"))));
}

}  // namespace
}  // namespace hooke
