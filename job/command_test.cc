#include "job/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "job/job_check.h"
#include "job/job_defaults.h"

namespace hooke {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Texts = std::vector<std::string>;

std::string FaultOfArguments(const Texts& arguments) { return std::string(CheckArguments(arguments).message()); }
std::string FaultOfVariables(const Texts& variables) { return std::string(CheckVariables(variables).message()); }

v1::JobSpec CommandJob() {
  v1::JobSpec job;
  job.set_name("own");
  job.mutable_command()->add_arguments("python3");
  job.mutable_command()->add_arguments("train.py");
  job.mutable_command()->set_directory("/home/me/work");
  return job;
}

Texts ProblemsOf(const v1::JobSpec& job) {
  Texts texts;
  for (const JobProblem& problem : CheckJob(job)) texts.push_back(absl::StrCat(problem.key, ": ", problem.message));
  return texts;
}

// A command is any program with any UTF-8 texts without NUL as arguments, within limits of number and size.
TEST(CommandTest, ArgumentsAreBounded) {
  EXPECT_EQ(FaultOfArguments({"python3", "", "a b", "\n", "z\xc3\xa4h"}), "");
  EXPECT_EQ(FaultOfArguments({}), "names no program");
  EXPECT_EQ(FaultOfArguments({"", "a"}), "names no program");
  EXPECT_EQ(FaultOfArguments({"a", std::string("b\0c", 3)}), "argument 1 has a NUL byte");
  EXPECT_EQ(FaultOfArguments({"\xff"}), "the program is not UTF-8");
  EXPECT_EQ(FaultOfArguments(Texts(256, "a")), "");
  EXPECT_EQ(FaultOfArguments(Texts(257, "a")), "has 257 arguments");
  EXPECT_EQ(FaultOfArguments({std::string(kCommandBytesMax - 1, 'a')}), "");
  EXPECT_EQ(FaultOfArguments({std::string(kCommandBytesMax, 'a')}), "has 32769 bytes");
}

// Variables by which a rank finds its group cannot be set by a job, and the refusal says whose they are.
TEST(CommandTest, VariablesOfTheLauncherAreRefused) {
  EXPECT_EQ(FaultOfVariables({"LR=0.1", "_X=", "PATH=/opt/bin:/usr/bin", "OMP_NUM_THREADS=1", "EQUALS=a=b"}), "");
  EXPECT_EQ(FaultOfVariables({"HOOKE_START=/tmp/start"}),
            "HOOKE_START is refused: Hooke sets the variables HOOKE_* for each rank, which finds its group by them; "
            "choose another name");
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "PMI2_X", "HYDI_CONTROL_FD", "SLURM_JOBID", "TMPDIR"}) {
    EXPECT_THAT(FaultOfVariables({absl::StrCat(name, "=1")}), HasSubstr(absl::StrCat(name, " is refused: "))) << name;
  }
  EXPECT_THAT(FaultOfVariables({"1A=b"}), HasSubstr("\"1A\" is not a variable's name"));
  EXPECT_THAT(FaultOfVariables({"=b"}), HasSubstr("\"\" is not a variable's name"));
  EXPECT_EQ(FaultOfVariables({absl::StrCat("A=", std::string("\0", 1))}), "the value of A has a NUL byte");
  EXPECT_EQ(FaultOfVariables(Texts(257, "A=b")), "has 257 variables");
}

// The text could be given to a shell, stays in one line, and is cut between two characters.
TEST(CommandTest, TextIsThatOfAShell) {
  EXPECT_EQ(CommandText({"python3", "train.py", "--lr", "0.1"}), "python3 train.py --lr 0.1");
  EXPECT_EQ(CommandText({"sh", "-c", "echo it's; exit 3", ""}), "sh -c 'echo it'\\''s; exit 3' ''");
  EXPECT_EQ(CommandText({"a", "\x1b[31m\n"}), "a '\\x1b[31m\\n'");
  EXPECT_EQ(CommandText({"\xc3\xa4\xc3\xa4"}, 4), "'\xc3\xa4...");
  EXPECT_EQ(CommandText({}), "");
  EXPECT_EQ(TrainedText(CommandJob()), "python3 train.py");
}

// A job with a command is complete without a model and data, and gets none of their defaults.
TEST(CommandTest, NeedsNoModelAndNoData) {
  const v1::JobSpec job = FillDefaults(CommandJob());
  EXPECT_THAT(ProblemsOf(job), ElementsAre());
  EXPECT_FALSE(job.has_model());
  EXPECT_EQ(job.data().format(), v1::DataSpec::FORMAT_UNSPECIFIED);
  EXPECT_EQ(job.train().batch_size(), 0u);
  EXPECT_FALSE(job.train().has_evaluate_every());
  EXPECT_EQ(job.train().seed(), 1u);
  EXPECT_EQ(job.train().optimizer().learning_rate(), 0.05);
  EXPECT_EQ(job.averaging().interval(), 16u);
}

// The keys of a model and of data are refused beside a command, and the keys of commands without a command. Each
// problem names the key to remove.
TEST(CommandTest, DoesNotGoWithAModel) {
  v1::JobSpec job = CommandJob();
  job.mutable_model()->set_name("lenet");
  job.mutable_data()->set_train("/data/train");
  job.mutable_train()->set_batch_size(8);
  job.mutable_train()->set_evaluate_every(0);
  const std::string why = "does not go with command, which brings its own model and data: remove it";
  EXPECT_THAT(ProblemsOf(FillDefaults(job)), ElementsAre("model: " + why, "data.train: " + why,
                                                         "train.batch_size: " + why, "train.evaluate_every: " + why));

  job = CommandJob();
  job.mutable_command()->clear_arguments();
  job.mutable_model()->set_name("lenet");
  job.mutable_data()->set_train("/data/train");
  job.mutable_data()->set_test("/data/test");
  EXPECT_THAT(ProblemsOf(FillDefaults(job)), ElementsAre("directory: means nothing without command: remove it"));
}

// The coordinator trusts no client: it checks the command's own fields, too.
TEST(CommandTest, FieldsAreChecked) {
  v1::JobSpec job = FillDefaults(CommandJob());
  job.mutable_command()->set_directory("work");
  (*job.mutable_command()->mutable_environment())["HOOKE_START"] = "x";
  job.mutable_command()->set_arguments(0, "");
  EXPECT_THAT(ProblemsOf(job), ElementsAre(HasSubstr("command: names no program; must be a list of 1 to 256 texts"),
                                           HasSubstr("environment: HOOKE_START is refused"),
                                           HasSubstr("directory: \"work\" is not an absolute path")));
  job = FillDefaults(CommandJob());
  job.mutable_command()->clear_directory();
  EXPECT_THAT(ProblemsOf(job), ElementsAre(HasSubstr("directory: \"\" is not a path")));
}

}  // namespace
}  // namespace hooke
