// Job files with a command in place of a built-in network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/job_file/job_file_samples.h"
#include "client/job_file/local_job_file.h"
#include "job/file_manifest.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kDoesNotGo[] = ": does not go with command, which brings its own model and data: remove it";

// A file of two keys is a job. Its arguments are texts as the file spells them, and it runs in the file's folder.
TEST(JobFileCommandTest, TwoKeysAreAJob) {
  const absl::StatusOr<LocalJobFile> file =
      ParseJobFile("name: own\ncommand: [python3, train.py, --lr, 0.10, \"\", 'a b', true]\n", "job.yaml", "/jobs");
  ASSERT_TRUE(file.ok()) << file.status();
  const v1::CommandSpec& command = file->spec.command();
  EXPECT_THAT(command.arguments(), ElementsAre("python3", "train.py", "--lr", "0.10", "", "a b", "true"));
  EXPECT_EQ(command.directory(), "/jobs");
  EXPECT_TRUE(command.environment().empty());
  EXPECT_FALSE(file->spec.has_model());
  EXPECT_EQ(file->spec.averaging().interval(), 16u);
}

// The environment is a map of texts. A relative folder starts at the file's folder. Groups, rules and the optimizer,
// with which servers may step, are those of any job.
TEST(JobFileCommandTest, ReadsEveryKey) {
  const absl::StatusOr<LocalJobFile> file = ParseJobFile(
      "name: own\n"
      "command:\n"
      "  - sh\n"
      "  - -c\n"
      "  - |\n"
      "    echo one\n"
      "    echo two\n"
      "environment: {LR: 0.1, EMPTY: \"\", A_B: a=b}\n"
      "directory: work/../own\n"
      "train: {seed: 7, optimizer: {name: adam}}\n"
      "groups: {count: 2, ranks: 3}\n"
      "averaging: {rule: async}\n",
      "job.yaml", "/jobs");
  ASSERT_TRUE(file.ok()) << file.status();
  const v1::CommandSpec& command = file->spec.command();
  EXPECT_THAT(command.arguments(), ElementsAre("sh", "-c", "echo one\necho two\n"));
  EXPECT_THAT(command.environment(), UnorderedElementsAre(Pair("LR", "0.1"), Pair("EMPTY", ""), Pair("A_B", "a=b")));
  EXPECT_EQ(command.directory(), "/jobs/own");
  EXPECT_EQ(file->spec.groups().ranks(), 3u);
  EXPECT_EQ(file->spec.train().seed(), 7u);
  EXPECT_EQ(file->lines.at("command"), 2);
}

// Beside a command, each key of a built-in network is refused, with its line. Keys of a command are refused beside a
// model.
TEST(JobFileCommandTest, DoesNotGoWithAModel) {
  EXPECT_EQ(ErrorOf("name: own\nmodel: lenet\ncommand: [a]\ndata: {train: a, test: b}\n"),
            absl::StrCat("job.yaml:2: model", kDoesNotGo, "\njob.yaml:4: data.train", kDoesNotGo,
                         "\njob.yaml:4: data.test", kDoesNotGo));
  EXPECT_EQ(ErrorOf("name: own\ncommand: [a]\ntrain:\n  batch_size: 64\n  evaluate_every: 1\n"),
            absl::StrCat("job.yaml:4: train.batch_size", kDoesNotGo, "\njob.yaml:5: train.evaluate_every", kDoesNotGo));
  EXPECT_EQ(ErrorOf("name: a\nmodel: mlp\ndata: {train: a, test: b}\nenvironment: {A: b}\ndirectory: /work\n"),
            "job.yaml:4: environment: means nothing without command: remove it\n"
            "job.yaml:5: directory: means nothing without command: remove it");
}

struct Mistake {
  const char* line;
  const char* message;
};

const Mistake kMistakes[] = {
    {"command: python3 train.py",
     "2: command: is a text; write a list, like [python3, train.py]; must be a list of 1 to 256 texts, together at "
     "most 32 KiB"},
    {"command: {a: b}", "2: command: is a map; must be a list of 1 to 256 texts, together at most 32 KiB"},
    {"command: []", "2: command: names no program; must be a list of 1 to 256 texts, together at most 32 KiB"},
    {"command:", "2: command: has no value; must be a list of 1 to 256 texts, together at most 32 KiB"},
    {"command: [a, ~]", "2: command: entry 2 of the list has no value; write \"\" for an empty text"},
    {"command: [a, [b]]", "2: command: entry 2 of the list is not a text; put it in quotes"},
    {"command: [a, !!int 4]",
     "2: command: entry 2 of the list has the YAML tag \"tag:yaml.org,2002:int\"; a job file has no tags: remove it"},
    {"command: [a, \"\\0\"]",
     "2: command: argument 1 has a NUL byte; must be a list of 1 to 256 texts, together at most 32 KiB"},
    {"command: [a]\nenvironment: [A]",
     "3: environment: is a list; must be a map of at most 256 names to texts, together at most 32 KiB"},
    {"command: [a]\nenvironment: {A: }", "3: environment: \"A\" has no value; write \"\" for an empty text"},
    {"command: [a]\nenvironment: {A: 1, A: 2}", "3: environment: \"A\" is given twice; keep one"},
    {"command: [a]\nenvironment: {OMPI_MCA_btl: tcp}",
     "3: environment: OMPI_MCA_btl is refused: Open MPI sets the variables OMPI_* for each rank, which finds its group "
     "by them; choose another name; must be a map of at most 256 names to texts, together at most 32 KiB"},
    {"command: [a]\ndirectory: \"a\\nb\"",
     "3: directory: \"a\\nb\" is not a path; must be a path of at most 4096 bytes, without control characters"},
    {"comand: [a]",
     "2: comand: unknown key; allowed here: name, priority, owner, preemptible, model, data, command, environment, "
     "directory, files, "
     "sites, train, "
     "groups, "
     "averaging, collectives (did you mean \"command\"?)"},
};

// A wrong command is told once, with what to do. That the file has no model is no second mistake.
TEST(JobFileCommandTest, SaysWhatIsWrong) {
  for (const Mistake& mistake : kMistakes) {
    const std::string error = ErrorOf(absl::StrCat("name: own\n", mistake.line, "\n"));
    EXPECT_EQ(error.substr(0, error.find("\njob.yaml")), absl::StrCat("job.yaml:", mistake.message));
  }
  EXPECT_EQ(ErrorOf("name: own\ncommand: [\"\"]\n"),
            "job.yaml:2: command: names no program; must be a list of 1 to 256 texts, together at most 32 KiB");
}

// The files are read when the rest of the file is right. The command then runs in their folder.
TEST(JobFileCommandTest, ReadsItsFiles) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/job-files-", getpid());
  std::filesystem::create_directories(folder + "/src");
  std::ofstream(folder + "/train.py") << "import src.a";
  std::ofstream(folder + "/src/a.py") << "a";
  const auto parse = [&](absl::string_view text) {
    return ParseJobFile(absl::StrCat("name: own\ncommand: [python3, train.py]\n", text), "job.yaml", folder);
  };
  const absl::StatusOr<LocalJobFile> file = parse("files: [./train.py, src/]\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(FilesText(file->spec.command().files()), "2 files, 13 bytes");
  EXPECT_EQ(file->spec.command().directory(), "");
  EXPECT_EQ(file->files.contents.size(), 2u);
  EXPECT_TRUE(ReadManifest(file->spec.command().files(), file->files.manifest).ok());
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& wrong : std::vector<Case>{
           {"files: [missing.py]", "job.yaml:3: files: \"missing.py\" is not there in "},
           {"files: train.py", "job.yaml:3: files: is a text; write a list, like [train.py]; must be a list of"},
           {"files: []", "job.yaml:3: files: has 0 entries"},
           {"files: [../x]", "job.yaml:3: files: \"../x\" has a part \"..\""},
           {"files: [/etc/passwd]", "job.yaml:3: files: \"/etc/passwd\" is not a relative path"},
           {"files: [{a: 1}]", "job.yaml:3: files: entry 1 of the list is no text"},
           {"files: [train.py]\ndirectory: src", "job.yaml:4: directory: is given beside files; keep one of them"}}) {
    EXPECT_THAT(std::string(parse(wrong.text).status().message()), testing::HasSubstr(wrong.error));
  }
  std::filesystem::remove_all(folder);
}

TEST(JobFileCommandTest, ReadsItsSites) {
  const absl::StatusOr<LocalJobFile> file = ParseJobFile(
      "name: own\ncommand: [python3]\nsites:\n  hpc: {interpreter: /opt/python3, environment: {A: 1}}\n"
      "  cloud: {virtual_environment: /venv}\n",
      "job.yaml", "/jobs");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto& sites = file->spec.command().sites();
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(sites.at("hpc").interpreter(), "/opt/python3");
  EXPECT_EQ(sites.at("hpc").environment().at("A"), "1");
  EXPECT_EQ(sites.at("cloud").virtual_environment(), "/venv");
  struct Case {
    const char* text;
    const char* error;
  };
  for (const Case& wrong :
       std::vector<Case>{{"[a]", "is not a map; must be a map of at most 64 sites"},
                         {"{hpc: /opt}", "site \"hpc\" is not a map"},
                         {"{hpc: {python: /opt}}", "site \"hpc\" has the unknown key \"python\""},
                         {"{hpc: {interpreter: bin/python3}}", "interpreter \"bin/python3\" is not an absolute path"},
                         {"{hpc: {interpreter: /a}, hpc: {interpreter: /b}}", "has \"hpc\" twice"},
                         {"{hpc: {environment: {A: [1]}}}", "environment \"A\" is not a text"},
                         {"{hpc: {environment: {HOOKE_START: x}}}", "HOOKE_START is refused"},
                         {"{hpc: {slurm: {}}}", "site hpc slurm asks for nothing"},
                         {"{hpc: {slurm: long}}", "site \"hpc\" slurm is not a map"},
                         {"{hpc: {slurm: {nodes: 2}}}", "site \"hpc\" slurm has the unknown key \"nodes\""},
                         {"{hpc: {slurm: {cpus_per_task: no}}}", "cpus_per_task \"no\" is not a number above 0"},
                         {"{hpc: {slurm: {time: [1]}}}", "slurm time is not a text"},
                         {"{\"a b\": {interpreter: /a}}", "\"a b\" is not a site's name"}}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("name: own\ncommand: [a]\nsites: ", wrong.text, "\n")),
                testing::HasSubstr("job.yaml:3: sites: "));
    EXPECT_THAT(ErrorOf(absl::StrCat("name: own\ncommand: [a]\nsites: ", wrong.text, "\n")),
                testing::HasSubstr(wrong.error));
  }
}

// A site's key `slurm` is allowed with a command and without one. Its other keys need a command.
TEST(JobFileCommandTest, ReadsWhatASiteAsksOfSlurm) {
  const std::string slurm_of_site = "sites:\n  hpc: {slurm: {partition: long, time: '8:00:00', cpus_per_task: 2}}\n";
  const std::string site = absl::StrCat("groups: {site: hpc}\n", slurm_of_site);
  const std::string model = "name: own\nmodel: mlp\ndata: {train: /a, test: /b}\n";
  for (const std::string& text : {absl::StrCat("name: own\ncommand: [python3]\n", site), absl::StrCat(model, site)}) {
    const absl::StatusOr<LocalJobFile> file = ParseJobFile(text, "job.yaml", "/jobs");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->spec.command().sites().empty());
    ASSERT_EQ(file->spec.slurm().size(), 1u);
    const v1::SlurmSpec& slurm = file->spec.slurm().at("hpc");
    EXPECT_EQ(slurm.partition(), "long");
    EXPECT_EQ(slurm.time(), "8:00:00");
    EXPECT_EQ(slurm.cpus_per_task(), 2u);
  }
  EXPECT_THAT(ErrorOf(absl::StrCat(model, slurm_of_site)),
              testing::HasSubstr("sites: no group is at site hpc, so nothing would be asked of Slurm"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(model, "sites: {hpc: {interpreter: /opt/python3}}\n")),
      testing::HasSubstr("job.yaml:4: sites: only slurm means anything without command: remove the other keys"));
}

}  // namespace
}  // namespace hooke
