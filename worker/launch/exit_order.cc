#include "worker/launch/exit_order.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hooke {

ExitOrder::ExitOrder() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

ExitOrder::~ExitOrder() {
  for (const auto& [rank, fd] : watched_) close(fd);
  if (epoll_ >= 0) close(epoll_);
}

void ExitOrder::Add(uint32_t rank, pid_t pid) {
  if (epoll_ < 0) return;
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // It is closed on exec.
  if (fd < 0) return;
  epoll_event event = {};
  event.events = EPOLLIN;  // A pidfd is readable when its process has exited.
  event.data.u32 = rank;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    close(fd);
    return;
  }
  watched_.emplace_back(rank, fd);
}

std::vector<uint32_t> ExitOrder::Exited() const {
  if (watched_.empty()) return {};
  std::vector<epoll_event> events(watched_.size());
  const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  std::vector<uint32_t> ranks;
  ranks.reserve(watched_.size());
  for (int i = 0; i < ready; ++i) ranks.push_back(events[i].data.u32);
  return ranks;
}

}  // namespace hooke
