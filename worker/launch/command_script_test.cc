#include "worker/launch/command_script.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/launch/process.h"
#include "worker/launch/rank_output.h"

namespace hooke {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Ran {
  ProcessEnd end;
  std::vector<std::string> out;
  std::vector<std::string> err;
};

// Runs the command by its script as rank 1 of 2, in a folder of the test.
Ran RunScript(const std::vector<std::string>& arguments) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/it's ", getpid());
  fs::create_directories(folder);
  Ran ran;
  auto output = RankOutput::Open(folder, {0, 2}, [&ran](const RankOutput::Line& line) {
    EXPECT_EQ(line.rank, 1u);
    (line.from_stderr ? ran.err : ran.out).emplace_back(line.text);
  });
  EXPECT_TRUE(output.ok()) << output.status();
  std::ofstream(folder + "/command") << CommandScript(arguments, folder, "mark-1");
  ProcessOptions options;
  options.argv = {"/bin/sh", folder + "/command"};
  options.environment = {"PATH=/usr/bin:/bin", "PMI_RANK=1"};
  options.folder = folder;
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(std::move(options));
  EXPECT_TRUE(process.ok()) << process.status();
  ran.end = (*process)->Wait(SteadyTime() + absl::Seconds(20)).value_or(ProcessEnd{99, 0});
  output->reset();
  fs::remove_all(folder);
  if (ran.err.empty() || !IsStartLine(ran.err[0], "mark-1")) {
    ADD_FAILURE() << "the first line does not say that the script runs";
  } else {
    ran.err.erase(ran.err.begin());
  }
  return ran;
}

// A burst of short lines arrives whole, and so does a last line without an end. An endless line comes in pieces.
TEST(CommandScriptTest, LosesNoLine) {
  const Ran ran = RunScript({"sh", "-c", "seq 20000; printf last; head -c 200000 /dev/zero >&2"});
  ASSERT_EQ(ran.out.size(), 20001u);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(ran.out[i], absl::StrCat(i + 1));
  EXPECT_EQ(ran.out.back(), "last");
  size_t bytes = 0;
  for (const std::string& piece : ran.err) bytes += piece.size();
  EXPECT_EQ(bytes, 200000u);
  EXPECT_GT(ran.err.size(), 1u);
}

// The command gets its arguments unchanged, whatever characters they have.
TEST(CommandScriptTest, ArgumentsArriveUnchanged) {
  const Ran ran = RunScript({"printf", "<%s>\\n", "a b", "it's", "", "$HOME", ":", "two\nlines", "\"\\"});
  EXPECT_TRUE(ran.end.ok()) << ToString(ran.end);
  EXPECT_THAT(ran.out, ElementsAre("<a b>", "<it's>", "<>", "<$HOME>", "<:>", "<two", "lines>", "<\"\\>"));
  EXPECT_THAT(ran.err, ElementsAre());
}

// The script ends with the command's exit status, and its last line of stderr has that status. Status 147 (128 +
// SIGSTOP) stops no process, though a shell reports a stopped process by it.
TEST(CommandScriptTest, TellsTheExitStatus) {
  for (const int status : {1, 3, 127, 147, 255}) {
    const Ran ran = RunScript({"sh", "-c", absl::StrCat("echo out; echo err >&2; exit ", status)});
    EXPECT_EQ(ran.end.exit_status, status);
    EXPECT_EQ(ran.end.signal, 0);
    EXPECT_THAT(ran.out, ElementsAre("out"));
    EXPECT_THAT(ran.err, ElementsAre("err", absl::StrCat("mark-1 ", status)));
  }
}

// If a signal kills the command, the script dies of the same signal, so that the launcher sees it. Before that, the
// script prints the signal in its last line.
TEST(CommandScriptTest, DiesOfTheSameSignal) {
  for (const int signal : {SIGKILL, SIGTERM, SIGSEGV, SIGABRT}) {
    const Ran ran = RunScript({"sh", "-c", absl::StrCat("kill -", signal, " $$")});
    EXPECT_EQ(ran.end.signal, signal);
    ASSERT_FALSE(ran.err.empty());
    EXPECT_EQ(ran.err.back(), absl::StrCat("mark-1 ", 128 + signal));
  }
}

// A batch system sends SIGTERM to all processes. The command may have a handler of its own, so the script, whose end
// would kill it, stays. A command without a handler ends by the signal as ever.
TEST(CommandScriptTest, SigtermToTheScriptAlone) {
  Ran ran = RunScript({"sh", "-c", "trap 'echo got it' TERM; kill -TERM $PPID $$; sleep 0.2; echo goes on; exit 3"});
  EXPECT_THAT(ran.out, ElementsAre("got it", "goes on"));
  EXPECT_EQ(ran.end.exit_status, 3);
  ran = RunScript({"sh", "-c", "kill -TERM $PPID; sleep 0.2; kill -TERM $$"});
  EXPECT_EQ(ran.end.signal, SIGTERM);
}

TEST(CommandScriptTest, ReadsItsLines) {
  EXPECT_TRUE(IsStartLine("m started", "m"));
  for (const char* line : {"", "m", "started", "m  started", "x m started", "m started "}) {
    EXPECT_FALSE(IsStartLine(line, "m")) << line;
  }
  EXPECT_EQ(ReadExitLine("m 3", "m")->status, 3);
  EXPECT_EQ(ReadExitLine("last words, m 137", "m")->status, 137);
  EXPECT_EQ(ReadExitLine("last words, m 137", "m")->before, "last words, ");
  for (const char* line : {"", "m", "m ", "m x", "m 0", "m 256", "m 3 4", "n 3", "m3"}) {
    EXPECT_FALSE(ReadExitLine(line, "m").has_value()) << line;
  }
  EXPECT_EQ(SignalOfStatus(137), SIGKILL);
  EXPECT_EQ(SignalOfStatus(139), SIGSEGV);
  for (const int status : {1, 127, 128, 147, 255}) EXPECT_FALSE(SignalOfStatus(status).has_value()) << status;
}

// A program that cannot be started is refused before the launcher starts. The error says what is missing, where, and
// what to do.
TEST(CommandScriptTest, FindsTheProgram) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/find", getpid());
  fs::create_directories(folder + "/bin");
  std::ofstream(folder + "/bin/run") << "#!/bin/sh\n";
  std::ofstream(folder + "/train.py") << "print()\n";
  fs::permissions(folder + "/bin/run", fs::perms::owner_all);
  const auto find = [&](const std::string& program, const std::string& in) {
    return FindCommand(program, in, "/usr/bin:/bin:bin");
  };
  EXPECT_TRUE(find("sh", folder).ok());
  EXPECT_TRUE(find("run", folder).ok()) << "a relative entry of the PATH";
  EXPECT_TRUE(find("bin/run", folder).ok());
  EXPECT_TRUE(find(folder + "/bin/run", "/").ok());
  EXPECT_EQ(find("no-such", folder).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(find("no-such", folder).message(),
            "there is no program no-such on this node's PATH (/usr/bin:/bin:bin); install it there, or write its whole "
            "path into the command");
  EXPECT_EQ(
      find("bin/no", folder).message(),
      absl::StrCat("there is no program ", folder, "/bin/no on this node; install it there, or mend the command"));
  EXPECT_EQ(find("./train.py", folder).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(find("./train.py", folder).message()), HasSubstr("make it executable (chmod +x)"));
  EXPECT_EQ(find("./bin", folder).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(find("sh", folder + "/no").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(find("sh", folder + "/no").message()),
              HasSubstr(absl::StrCat("there is no folder ", folder, "/no on this node")));
  EXPECT_EQ(find("sh", folder + "/train.py").code(), absl::StatusCode::kFailedPrecondition);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace hooke
