// The command of a job as it runs at a site, and which sites a job may describe.

#include "job/site_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::CommandSpec Command() {
  v1::CommandSpec command;
  command.add_arguments("python3");
  command.add_arguments("train.py");
  (*command.mutable_environment())["LEVEL"] = "1";
  (*command.mutable_sites())["hpc"].set_interpreter("/opt/py/bin/python3");
  v1::SiteSpec& cloud = (*command.mutable_sites())["cloud"];
  cloud.set_virtual_environment("/srv/venv");
  (*cloud.mutable_environment())["LEVEL"] = "2";
  return command;
}

v1::JobSpec JobOf(v1::CommandSpec command) {
  v1::JobSpec job;
  *job.mutable_command() = std::move(command);
  return job;
}

TEST(SiteCommandTest, ASiteReplacesTheInterpreter) {
  const v1::CommandSpec command = Command();
  EXPECT_TRUE(CheckSites(JobOf(command)).ok());
  EXPECT_EQ(SitesText(JobOf(command)), "cloud, hpc");
  const SiteCommand elsewhere = CommandAtSite(command, "default", "/bin");
  EXPECT_THAT(elsewhere.arguments, ElementsAre("python3", "train.py"));
  EXPECT_THAT(elsewhere.variables, ElementsAre("LEVEL=1"));
  const SiteCommand hpc = CommandAtSite(command, "hpc", "/bin");
  EXPECT_THAT(hpc.arguments, ElementsAre("/opt/py/bin/python3", "train.py"));
  EXPECT_THAT(hpc.variables, ElementsAre("LEVEL=1"));
  const SiteCommand cloud = CommandAtSite(command, "cloud", "/bin");
  EXPECT_THAT(cloud.arguments, ElementsAre("/srv/venv/bin/python3", "train.py"));
  EXPECT_THAT(cloud.variables, ElementsAre("LEVEL=2", "PATH=/srv/venv/bin:/bin", "VIRTUAL_ENV=/srv/venv"));
}

// A virtual environment comes before the PATH that the job sets, and not before the worker's.
TEST(SiteCommandTest, TheJobsOwnPathStays) {
  v1::CommandSpec command = Command();
  (*command.mutable_environment())["PATH"] = "/mine";
  EXPECT_THAT(CommandAtSite(command, "cloud", "/bin").variables,
              ElementsAre("LEVEL=2", "PATH=/srv/venv/bin:/mine", "VIRTUAL_ENV=/srv/venv"));
}

TEST(SiteCommandTest, OnlyPythonIsReplaced) {
  for (const char* program : {"python", "python3", "python3.11"}) EXPECT_TRUE(NamesPython(program)) << program;
  for (const char* program :
       {"", "sh", "python2", "python3.", "python3.x", "pythonic", "/usr/bin/python3", "./python3", "bin/python"}) {
    EXPECT_FALSE(NamesPython(program)) << program;
  }
  v1::CommandSpec command = Command();
  command.set_arguments(0, "/usr/bin/python3");
  EXPECT_EQ(CommandAtSite(command, "hpc", "/bin").arguments[0], "/usr/bin/python3");
}

TEST(SiteCommandTest, WrongSitesAreNamed) {
  struct Case {
    const char* name;
    v1::SiteSpec site;
    const char* fault;
  };
  v1::SiteSpec relative;
  relative.set_interpreter("bin/python3");
  v1::SiteSpec both;
  both.set_interpreter("/a");
  both.set_virtual_environment("/b");
  v1::SiteSpec variable;
  (*variable.mutable_environment())["PMI_RANK"] = "0";
  for (const Case& wrong :
       std::vector<Case>{{"a b", relative, "\"a b\" is not a site's name"},
                         {"s", {}, "site s has neither interpreter"},
                         {"s", relative, "site s interpreter \"bin/python3\" is not an absolute path"},
                         {"s", both, "site s has both"},
                         {"s", variable, "site s environment: PMI_RANK is refused"}}) {
    v1::CommandSpec command = Command();
    (*command.mutable_sites())[wrong.name] = wrong.site;
    EXPECT_THAT(std::string(CheckSites(JobOf(command)).message()), HasSubstr(wrong.fault));
  }
  v1::CommandSpec command = Command();
  for (int i = 0; i < 64; ++i) (*command.mutable_sites())[absl::StrCat("s", i)].set_interpreter("/a");
  EXPECT_THAT(std::string(CheckSites(JobOf(command)).message()), HasSubstr("has 66 sites"));
}

// The values under `slurm` become flags of sbatch. So a value is refused if it could be anything but one flag's value.
TEST(SiteCommandTest, WhatIsAskedOfSlurmIsChecked) {
  v1::JobSpec job;
  EXPECT_FALSE(HasSites(job));
  v1::SlurmSpec& slurm = (*job.mutable_slurm())["hpc"];
  EXPECT_THAT(std::string(CheckSites(job).message()), HasSubstr("site hpc slurm asks for nothing"));
  slurm.set_partition("long,short");
  slurm.set_account("physics-2");
  slurm.set_qos("high");
  slurm.set_time("1-00:00:00");
  slurm.set_constraint("(ib|opa)&rack[1-4]*2&GPU_MEM:16GB");
  slurm.set_cpus_per_task(1024);
  slurm.set_memory_per_cpu("500M");
  EXPECT_TRUE(CheckSites(job).ok()) << CheckSites(job);
  EXPECT_TRUE(HasSites(job));
  EXPECT_EQ(SitesText(job), "hpc");
  struct Case {
    void (*change)(v1::SlurmSpec&);
    const char* fault;
  };
  for (const Case& wrong : std::vector<Case>{
           {[](v1::SlurmSpec& of) { of.set_partition("a b"); }, "slurm: partition \"a b\" is not a name"},
           {[](v1::SlurmSpec& of) { of.set_account("a\n"); }, "slurm: account"},
           {[](v1::SlurmSpec& of) { of.set_qos(std::string(65, 'q')); }, "slurm: qos"},
           {[](v1::SlurmSpec& of) { of.set_time("tomorrow"); }, "slurm: time \"tomorrow\" is not a time"},
           {[](v1::SlurmSpec& of) { of.set_time("-1"); }, "slurm: time"},
           {[](v1::SlurmSpec& of) { of.set_constraint("a b"); }, "slurm: constraint"},
           {[](v1::SlurmSpec& of) { of.set_cpus_per_task(1025); }, "slurm: cpus_per_task 1025 is out of range"},
           {[](v1::SlurmSpec& of) { of.set_memory_per_cpu("G"); }, "slurm: memory_per_cpu \"G\" is not a size"},
           {[](v1::SlurmSpec& of) { of.set_memory_per_cpu("4GB"); }, "slurm: memory_per_cpu"}}) {
    v1::JobSpec changed = job;
    wrong.change((*changed.mutable_slurm())["hpc"]);
    EXPECT_THAT(std::string(CheckSites(changed).message()), HasSubstr(wrong.fault));
  }
}

}  // namespace
}  // namespace hooke
