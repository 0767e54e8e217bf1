#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/coordinator_client.h"
#include "client/process/interrupts.h"
#include "client/text/listing.h"
#include "client/text/terminal_text.h"
#include "client/top/top.h"
#include "client/watch/terminal_picture.h"

namespace hooke {
namespace {

// An interrupt does not end a call, so calls are short.
constexpr absl::Duration kCallLimit = absl::Milliseconds(1500);

struct TopFlags {
  double interval = 1;
  uint64_t count = 0;
};

// Shows states as the invocation wants them.
class TopOutput {
 public:
  explicit TopOutput(const Invocation& invocation) : invocation_(invocation), picture_(*invocation.out) {}

  void Show(const TopState& state, absl::Time now) {
    if (invocation_.json()) {
      if (!state.away()) *invocation_.out << DumpJson(TopToJson(state)) << std::endl;
      TellTrouble(*invocation_.err, "hooke: ", state, now);
    } else if (invocation_.terminal) {
      picture_.Draw(RenderTop(state, now, TerminalSize()), state.away() ? 1 : 0);
    } else {
      TellTrouble(*invocation_.out, "", state, now);
      if (!state.away()) {
        // An empty line divides pictures.
        if (shown_++ > 0) *invocation_.out << "\n";
        for (const std::string& line : RenderTop(state, now, {})) *invocation_.out << line << "\n";
      }
      invocation_.out->flush();
    }
    was_away_ = state.away();
  }

 private:
  void TellTrouble(std::ostream& out, const char* prefix, const TopState& state, absl::Time now) const {
    if (state.away() && !was_away_) {
      out << prefix << TopAwayText(state, now, absl::LocalTimeZone()) << std::endl;
    }
  }

  // The terminal's size now: it may change while this command runs.
  TopViewOptions TerminalSize() const {
    TopViewOptions options;
    options.width = invocation_.width;
    options.height = invocation_.height;
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
      options.width = size.ws_col;
      options.height = size.ws_row;
    }
    return options;
  }

  const Invocation& invocation_;
  TerminalPicture picture_;
  uint64_t shown_ = 0;
  bool was_away_ = false;
};

int Top(const Invocation& invocation, const TopFlags& flags, const Command& command) {
  Interrupts interrupts;  // Must exist before gRPC starts threads.
  int code = kSucceeded;
  const std::unique_ptr<CoordinatorClient> coordinator = ConnectOrReport(invocation, code);
  if (coordinator == nullptr) return code;
  coordinator->LimitCalls(kCallLimit);
  TopOptions options;
  options.interval = absl::Seconds(flags.interval);
  options.count = flags.count;
  // Into a file or a pipe goes one picture, unless more are asked for.
  if (!invocation.terminal && !command.Given("--count") && !command.Given("--interval")) options.count = 1;
  options.rates_first = !invocation.terminal;
  TopOutput output(invocation);
  const absl::Status status = RunTop(*coordinator, interrupts, options,
                                     [&output](const TopState& state, absl::Time now) { output.Show(state, now); });
  if (absl::IsCancelled(status)) return options.count > 0 ? kInterrupted : kSucceeded;
  return status.ok() ? kSucceeded : Report(invocation, status);
}

}  // namespace

void AddTopCommand(Command& program, Invocation& invocation) {
  Command& command = program.AddCommand(
      "top", "Show the whole cluster, again each second: jobs, groups, workers and servers, with their rates");
  auto flags = std::make_shared<TopFlags>();
  AddCoordinatorFlag(command, invocation);
  AddOutputFlag(command, invocation);
  command.Add("--interval", flags->interval, "Time from one picture to the next. Default: 1")
      .Range(0.1, 3600.0)
      .Type("SECONDS");
  command
      .Add("--count", flags->count,
           "End after so many pictures. Default: on a terminal none is the last, elsewhere the first is")
      .Range(uint64_t{1}, uint64_t{1000000000})
      .Type("N");
  command.Footer(
      "On a terminal the picture is drawn in place until Ctrl-C (exit code 0). Into a file or a pipe goes one picture; "
      "with --interval alone they go on until Ctrl-C. With --output json each is an object on a line.\n"
      "Rates are means over the last 5 seconds. EXCH/S counts exchanges of groups; each is one with every server of "
      "the "
      "job.\n"
      "While the coordinator is away the picture stays, grey, and the first line says since when and why.");
  command.Action([&invocation, flags, &command] { return Top(invocation, *flags, command); });
}

}  // namespace hooke
