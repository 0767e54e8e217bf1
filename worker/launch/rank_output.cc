#include "worker/launch/rank_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "worker/launch/shell_quoted.h"

namespace hooke {
namespace {

constexpr size_t kLineBytesMax = 64 << 10;
constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kPipeBytesMax = 1 << 20;  // The most that a pipe holds (/proc/sys/fs/pipe-max-size, by default).

std::string PipePath(const std::string& folder, bool from_stderr) {
  return absl::StrCat(folder, from_stderr ? "/stderr." : "/stdout.");
}

}  // namespace

std::string RankOutput::Redirection(const std::string& folder) {
  return absl::StrCat("rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMIX_RANK}}\nexec >",
                      ShellQuoted(PipePath(folder, false)), "$rank 2>", ShellQuoted(PipePath(folder, true)), "$rank\n");
}

absl::StatusOr<std::unique_ptr<RankOutput>> RankOutput::Open(const std::string& folder, Ranks ranks, OnLine on_line) {
  std::unique_ptr<RankOutput> output(new RankOutput(std::move(on_line)));
  output->stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Without it the thread could not be ended.
  if (output->stop_fd_ < 0) return absl::ResourceExhaustedError(absl::StrCat("eventfd: ", strerror(errno)));
  for (uint32_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
    for (const bool from_stderr : {false, true}) {
      absl::Status status = output->OpenPipe(absl::StrCat(PipePath(folder, from_stderr), rank), rank, from_stderr);
      if (!status.ok()) return status;
    }
  }
  output->thread_ = std::thread([output = output.get()] { output->Run(); });
  return output;
}

absl::Status RankOutput::OpenPipe(const std::string& path, uint32_t rank, bool from_stderr) {
  // The pipe is opened for writing as well. So a rank never waits when it opens the pipe, and we get no end of file
  // while no rank has it open.
  const int fd = mkfifo(path.c_str(), 0600) == 0 ? open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot make the pipe ", path, ": ", strerror(errno),
                     errno == EMFILE ? "; raise the worker's limit of open files (ulimit -n)" : ""));
  }
  pipes_.push_back({rank, from_stderr, fd, ""});
  return absl::OkStatus();
}

RankOutput::~RankOutput() {
  const uint64_t one = 1;
  if (thread_.joinable()) {
    // Writing to the eventfd never blocks, because its count is far from its limit.
    while (write(stop_fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  for (const Pipe& pipe : pipes_) close(pipe.fd);
  if (stop_fd_ >= 0) close(stop_fd_);
}

void RankOutput::Run() {
  std::vector<pollfd> polled;
  for (const Pipe& pipe : pipes_) polled.push_back({pipe.fd, POLLIN, 0});
  polled.push_back({stop_fd_, POLLIN, 0});
  while (polled.back().revents == 0) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    for (size_t i = 0; i < pipes_.size(); ++i) {
      if (polled[i].revents != 0) Read(pipes_[i]);
    }
  }
  for (Pipe& pipe : pipes_) {
    // Reads no more than a pipe can hold. A process that has left the group may go on writing for ever.
    for (size_t reads = 0; reads < kPipeBytesMax / kReadBytes && Read(pipe); ++reads) {
    }
    if (!pipe.partial.empty()) Deliver(pipe, pipe.partial);
  }
}

bool RankOutput::Read(Pipe& pipe) {
  char bytes[kReadBytes];
  const ssize_t count = read(pipe.fd, bytes, sizeof bytes);
  if (count <= 0) return count < 0 && errno == EINTR;
  pipe.partial.append(bytes, static_cast<size_t>(count));
  size_t begin = 0;
  for (size_t end; (end = pipe.partial.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Deliver(pipe, absl::string_view(pipe.partial).substr(begin, end - begin));
  }
  pipe.partial.erase(0, begin);
  if (pipe.partial.size() < kLineBytesMax) return true;
  Deliver(pipe, pipe.partial);
  pipe.partial.clear();
  return true;
}

}  // namespace hooke
