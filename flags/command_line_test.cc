#include "flags/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace hooke {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Parsed Parse(Command& command, std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return command.Parse(static_cast<int>(words.size()), words.data());
}

// Every type of value is read, and one that was not given keeps its default.
TEST(CommandLineTest, ReadsEveryTypeOfValue) {
  bool flag = false;
  int number = 1;
  uint32_t small = 1;
  uint64_t large = 1;
  double real = 1;
  std::string text = "default";
  std::string kept = "kept";
  absl::Duration duration;
  std::vector<std::string> texts;
  std::vector<uint64_t> numbers = {1, 2};
  std::string position;
  Command command("program", "Takes all there is");
  command.Add("-f,--flag", flag, "help");
  command.Add("--number", number, "help");
  command.Add("--small", small, "help");
  command.Add("--large", large, "help");
  command.Add("--real", real, "help");
  command.Add("--text", text, "help");
  command.Add("--kept", kept, "help");
  command.Add("--duration", duration, "help");
  command.Add("--texts", texts, "help");
  command.Add("--numbers", numbers, "help");
  command.Add("POSITION", position, "help");
  const Parsed parsed =
      Parse(command, {"-f", "--number=-7", "--small", "4294967295", "--large=18446744073709551615", "--real=0.5",
                      "here", "--text=given", "--duration=1m30s", "--texts=a", "--texts", "b", "--numbers", "3"});
  EXPECT_TRUE(parsed.ok()) << parsed.error;
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, -7);
  EXPECT_EQ(small, UINT32_MAX);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_EQ(real, 0.5);
  EXPECT_EQ(text, "given");
  EXPECT_EQ(kept, "kept");
  EXPECT_EQ(duration, absl::Seconds(90));
  EXPECT_THAT(texts, ElementsAre("a", "b"));
  EXPECT_THAT(numbers, ElementsAre(3));
  EXPECT_EQ(position, "here");
  EXPECT_TRUE(command.Given("--flag"));
  EXPECT_TRUE(command.Given("POSITION"));
  EXPECT_FALSE(command.Given("--kept"));
}

struct Mistake {
  std::vector<const char*> words;
  const char* error;
};

// A wrong command line gives an error that names the fault. Parse prints nothing and does not end the program.
TEST(CommandLineTest, NamesMistakes) {
  int ranks = 2;
  double seconds = 1;
  uint64_t bytes = 4;
  std::string level = "info";
  std::string address;
  std::string file;
  std::string other;
  std::string needed;
  absl::Duration lease;
  Command command("program", "Is strict");
  command.Add("--ranks", ranks, "help").Range(1, 1024);
  command.Add("--seconds", seconds, "help").Range(0.5, 60.0);
  command.Add("--bytes", bytes, "help").Range(uint64_t{4}, uint64_t{1} << 40);
  command.Add("--level", level, "help").OneOf({"info", "error"});
  command.Add("--address", address, "help").Check([](const std::string& text) {
    return text == "nowhere" ? "nobody is there" : "";
  });
  command.Add("--lease", lease, "help");
  Argument one = command.Add("--file", file, "help");
  Argument two = command.Add("--other", other, "help").Excludes(one);
  command.Add("--needy", needed, "help").Needs(two);
  command.Add("JOB", needed, "help").Required();
  const std::vector<Mistake> mistakes = {
      {{}, "JOB is required"},
      {{"job", "--ranks=0"}, "--ranks: Value 0 not in range 1 to 1024"},
      {{"job", "--ranks=many"}, "--ranks: Value many not in range 1 to 1024"},
      {{"job", "--ranks"}, "--ranks: 1 required INT:INT in [1 - 1024] missing"},
      {{"job", "--seconds=61"}, "--seconds: Value 61 not in range 0.500000 to 60.000000"},
      {{"job", "--bytes=3"}, "--bytes: Value 3 not in range 4 to 1099511627776"},
      {{"job", "--level=loud"}, "--level: loud not in {info,error}"},
      {{"job", "--address=nowhere"}, "--address: nobody is there"},
      {{"job", "--lease=30"}, "Could not convert: --lease = 30"},
      {{"job", "--other=a", "--file=b"}, "--file excludes --other"},
      {{"job", "--needy=a"}, "--needy requires --other"},
      {{"job", "--ranges=2"}, "The following argument was not expected: --ranges=2"},
      {{"job", "extra"}, "The following argument was not expected: extra"},
      {{"job", "--range", "2", "extra"}, "The following arguments were not expected: --range 2 extra"},
  };
  for (const Mistake& mistake : mistakes) {
    const Parsed parsed = Parse(command, mistake.words);
    EXPECT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error, mistake.error);
    EXPECT_EQ(parsed.help, "");
    EXPECT_EQ(parsed.exit_code(), 2);
    EXPECT_EQ(parsed.Text(), parsed.error + "\nRun with --help for more information.\n");
  }
}

// --help shows types, limits, defaults and the footer, except where an argument hides them.
TEST(CommandLineTest, Help) {
  int ranks = 2;
  int threads = 1;
  std::string level = "info";
  std::string listen = "here:1";
  absl::Duration lease = absl::Seconds(10);
  Command command("program", "Does something.");
  command.ShowDefaults();
  command.Version("program 1.2");
  command.Add("--ranks", ranks, "How many").Range(1, 4);
  command.Add("--threads", threads, "Of a rank").HideDefault();
  command.Add("--level", level, "How loud").OneOf({"info", "error"}).Type("LEVEL");
  command.Add("--listen", listen, "Where").Type("HOST:PORT").Required();
  command.Add("--lease", lease, "How long");
  command.Footer("That is all.");
  const Parsed parsed = Parse(command, {"--help"});
  EXPECT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.exit_code(), 0);
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.help,
            "Does something.\n"
            "Usage: program [OPTIONS]\n"
            "\n"
            "Options:\n"
            "  -h,--help                   Print this help message and exit\n"
            "  --version                   Display program version information and exit\n"
            "  --ranks INT:INT in [1 - 4]=2\n"
            "                              How many\n"
            "  --threads INT               Of a rank\n"
            "  --level LEVEL=info          How loud\n"
            "  --listen HOST:PORT=here:1 REQUIRED\n"
            "                              Where\n"
            "  --lease DURATION=10s        How long\n"
            "\n"
            "That is all.\n");
  EXPECT_EQ(command.HelpText(), parsed.help);
  EXPECT_EQ(parsed.Text(), parsed.help);
  EXPECT_EQ(Parse(command, {"--version"}).help, "program 1.2\n");
}

// The action of the chosen subcommand is returned and not run. A subcommand has a help text of its own. Without a
// subcommand there is an error.
TEST(CommandLineTest, Subcommands) {
  int ranks = 2;
  int done = 0;
  Command command("program", "Has two commands.");
  command.HelpOfHelp("Print this help and end");
  Command& first = command.AddCommand("first", "Does this");
  first.Action([&] { return done = 1; });
  Command& second = command.AddCommand("second", "Does that");
  second.Add("--ranks", ranks, "How many").Range(1, 4);
  second.Footer("More about it.");
  second.Action([&] { return done = second.Given("--ranks") ? ranks : 9; });

  const Parsed parsed = Parse(command, {"second", "--ranks=3"});
  ASSERT_TRUE(parsed.ok()) << parsed.error;
  EXPECT_EQ(parsed.command, "second");
  EXPECT_EQ(done, 0);
  EXPECT_EQ(parsed.action(), 3);
  EXPECT_EQ(done, 3);
  EXPECT_EQ(Parse(command, {"second"}).action(), 9);
  EXPECT_EQ(Parse(command, {"first"}).action(), 1);

  const Parsed wrong = Parse(command, {"second", "--ranks=5"});
  EXPECT_EQ(wrong.command, "second");
  EXPECT_EQ(wrong.error, "--ranks: Value 5 not in range 1 to 4");
  EXPECT_EQ(Parse(command, {}).error, "A subcommand is required");
  EXPECT_EQ(Parse(command, {"third"}).command, "");
  const Parsed help = Parse(command, {"second", "--help"});
  EXPECT_THAT(help.help, StartsWith("Does that\nUsage: program second [OPTIONS]\n"));
  EXPECT_THAT(help.help, HasSubstr("Print this help and end"));
  EXPECT_THAT(help.help, HasSubstr("\nMore about it.\n"));
  EXPECT_THAT(Parse(command, {"--help"}).help, Not(HasSubstr("More about it.")));
}

// A description has everything that shell completion needs.
TEST(CommandLineTest, Describes) {
  bool follow = false;
  std::string job;
  std::string output;
  Command command("program", "Has a command.");
  Command& logs = command.AddCommand("logs", "Prints a log");
  logs.Add("JOB", job, "The job").Required().Type("");
  logs.Add("-f,--follow", follow, "Until it ends");
  logs.Add("--output", output, "How to print").OneOf({"table", "json"}).Type("table|json");
  const CommandDescription program = command.Describe();
  EXPECT_EQ(program.name, "program");
  EXPECT_EQ(program.help, "Has a command.");
  ASSERT_EQ(program.arguments.size(), 1u);
  EXPECT_THAT(program.arguments[0].long_names, ElementsAre("--help"));
  ASSERT_EQ(program.commands.size(), 1u);
  const CommandDescription& described = program.commands[0];
  EXPECT_EQ(described.name, "logs");
  EXPECT_EQ(described.help, "Prints a log");
  ASSERT_EQ(described.arguments.size(), 4u);
  EXPECT_EQ(described.arguments[1].position_name, "JOB");
  EXPECT_EQ(described.arguments[1].type, "");
  EXPECT_TRUE(described.arguments[1].takes_value);
  EXPECT_THAT(described.arguments[2].short_names, ElementsAre("-f"));
  EXPECT_THAT(described.arguments[2].long_names, ElementsAre("--follow"));
  EXPECT_EQ(described.arguments[2].position_name, "");
  EXPECT_FALSE(described.arguments[2].takes_value);
  EXPECT_EQ(described.arguments[2].help, "Until it ends");
  EXPECT_EQ(described.arguments[3].type, "table|json");
  EXPECT_TRUE(described.arguments[3].takes_value);
}

}  // namespace
}  // namespace hooke
