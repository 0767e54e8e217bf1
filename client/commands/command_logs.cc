#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/commands/command.h"
#include "client/commands/logs_command.h"
#include "client/coordinator_client.h"
#include "client/text/terminal_text.h"
#include "client/text/time_text.h"

namespace hooke {
namespace {

// Prints `text`, which is whole lines. On a terminal it is made printable, and times are in the reader's zone. In a
// file or a pipe the log stays as it was written.
void Print(const Invocation& invocation, const std::string& text) {
  if (!invocation.terminal) {
    *invocation.out << text << std::flush;
    return;
  }
  const absl::Time now = absl::Now();
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    *invocation.out << WithTimeTexts(Printable(line), now, absl::LocalTimeZone()) << "\n";
  }
  invocation.out->flush();
}

// Reads a job's log. After the coordinator was away, it continues where it was.
class LogReader {
 public:
  LogReader(const Invocation& invocation, CoordinatorClient& coordinator, const LogOptions& options)
      : invocation_(invocation), coordinator_(coordinator), options_(options) {
    request_.set_job_id(options.job);
    request_.set_follow(options.follow);
  }

  absl::Status Read() {
    constexpr absl::Duration kPatience = absl::Minutes(5);
    absl::Time answered = absl::Now();
    while (true) {
      const absl::Status end = ReadStream(answered);
      if (absl::IsOutOfRange(end) || !invocation_.out->good()) return absl::OkStatus();
      if (!stopped_.ok()) return stopped_;
      const bool again = request_.follow() && (absl::IsUnavailable(end) || absl::IsDeadlineExceeded(end));
      if (!again) return coordinator_.ExplainAbout(request_.job_id(), end);
      if (absl::Now() - answered > kPatience) {
        return absl::UnavailableError(
            absl::StrCat("the coordinator has said nothing for ", absl::FormatDuration(kPatience),
                         ", not even that it is there; the same command shows the log when it is back"));
      }
      absl::SleepFor(absl::Seconds(1));
    }
  }

 private:
  // Reads one stream of log chunks to its end. While a job has nothing to log, the coordinator sends empty chunks. If a
  // host vanishes, its streams never break. So a stream on which nothing comes for kSilence is given up.
  absl::Status ReadStream(absl::Time& answered) {
    constexpr absl::Duration kSilence = absl::Seconds(60);
    constexpr absl::Duration kPoll = absl::Milliseconds(200);
    const std::unique_ptr<TimedReader<v1::LogChunk>> stream = coordinator_.ReadLog(request_);
    absl::Time heard = absl::Now();
    while (invocation_.out->good()) {
      if (options_.goes_on) stopped_ = options_.goes_on();
      if (!stopped_.ok()) return stopped_;
      absl::StatusOr<v1::LogChunk> chunk = stream->Next(kPoll);
      if (absl::IsDeadlineExceeded(chunk.status()) && absl::Now() - heard < kSilence) continue;
      if (!chunk.ok()) return chunk.status();
      answered = heard = absl::Now();
      if (!chunk->text().empty()) Print(invocation_, chunk->text());
      request_.set_offset(chunk->next_offset());
    }
    return absl::OkStatus();
  }

  const Invocation& invocation_;
  CoordinatorClient& coordinator_;
  const LogOptions& options_;
  v1::ReadLogRequest request_;
  absl::Status stopped_;  // The last result of `goes_on`.
};

int Logs(const Invocation& invocation, const LogOptions& options) {
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  const absl::Status end = PrintLog(invocation, *coordinator, options);
  return end.ok() ? static_cast<int>(kSucceeded) : Report(invocation, end);
}

}  // namespace

absl::Status PrintLog(const Invocation& invocation, CoordinatorClient& coordinator, const LogOptions& options) {
  return LogReader(invocation, coordinator, options).Read();
}

void AddLogsCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand("logs", "Print a job's log: what its ranks, workers and the coordinator said");
  auto flags = std::make_shared<LogOptions>();
  command.Add("JOB", flags->job, "The job's id, as `hooke jobs` lists it").Required().Type("");
  command.Add("-f,--follow", flags->follow, "Go on until the job ends");
  AddCoordinatorFlag(command, invocation);
  command.Footer(
      "On a terminal times are local; into a file or a pipe the log goes as it is kept, with times in UTC (RFC 3339).");
  command.Action([&invocation, flags] { return Logs(invocation, *flags); });
}

}  // namespace hooke
