#ifndef HOOKE_WORKER_LAUNCH_RANK_OUTPUT_H_
#define HOOKE_WORKER_LAUNCH_RANK_OUTPUT_H_

// Reads what the ranks of a command print, line by line, from two named pipes for each rank. The launchers could pass
// these lines on too, but they damage some. Open MPI's launcher drops some lines if many short ones come at once. Both
// launchers cut a line in two where a block of some KiB ends.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

class RankOutput {
 public:
  struct Line {
    uint32_t rank = 0;
    bool from_stderr = false;
    absl::string_view text;  // The line without its line end. A line of more than 64 KiB comes in pieces.
  };
  // Called on the thread of the RankOutput.
  using OnLine = std::function<void(const Line& line)>;

  struct Ranks {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  // Makes the pipes of these ranks in `folder`, which the caller removes later. UNAVAILABLE if that fails.
  static absl::StatusOr<std::unique_ptr<RankOutput>> Open(const std::string& folder, Ranks ranks, OnLine on_line);

  // Reads what is left in the pipes and delivers it. The ranks must have ended.
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  // Returns the shell commands with which a rank's script opens its own pipes in `folder` as stdout and stderr.
  static std::string Redirection(const std::string& folder);

 private:
  struct Pipe {
    uint32_t rank = 0;
    bool from_stderr = false;
    int fd = -1;
    std::string partial;  // The start of a line whose end has not come yet.
  };

  explicit RankOutput(OnLine on_line) : on_line_(std::move(on_line)) {}
  absl::Status OpenPipe(const std::string& path, uint32_t rank, bool from_stderr);
  void Run();
  // Reads the pipe once; false if it was empty.
  bool Read(Pipe& pipe);
  void Deliver(const Pipe& pipe, absl::string_view text) { on_line_({pipe.rank, pipe.from_stderr, text}); }

  const OnLine on_line_;
  int stop_fd_ = -1;  // An eventfd; readable when the destructor wants the thread to end.
  std::vector<Pipe> pipes_;
  std::thread thread_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_LAUNCH_RANK_OUTPUT_H_
