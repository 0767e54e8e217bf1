#include "server/parameters/session_threads.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// A thread looks at the sockets after so many posted sessions, so that neither kind keeps the other waiting.
constexpr int kPostedInARow = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<SessionThreads>> SessionThreads::Start(size_t threads,
                                                                      std::function<void(DirectSession&)> serve) {
  std::unique_ptr<SessionThreads> started(new SessionThreads(std::move(serve)));
  started->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  started->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event wake = {};
  wake.events = EPOLLIN;
  if (started->epoll_ < 0 || started->wake_ < 0 ||
      epoll_ctl(started->epoll_, EPOLL_CTL_ADD, started->wake_, &wake) != 0) {
    return absl::UnavailableError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  try {
    while (started->threads_.size() < threads) {
      started->threads_.emplace_back([started = started.get()] { started->Run(); });
    }
  } catch (const std::system_error& error) {
    if (!started->threads_.empty()) return started;
    return absl::UnavailableError(absl::StrCat("this server's process can have no more threads (", error.what(),
                                               "); raise its limit (ulimit -u, TasksMax)"));
  }
  return started;
}

SessionThreads::~SessionThreads() {
  Stop();
  if (epoll_ >= 0) close(epoll_);
  if (wake_ >= 0) close(wake_);
}

void SessionThreads::Stop() {
  stopped_ = true;
  eventfd_write(wake_, 1);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool SessionThreads::Await(DirectSession& session, int descriptor, uint32_t events) {
  epoll_event event = {};
  // One-shot, so that one thread gets the session.
  event.events = events | EPOLLONESHOT;
  event.data.ptr = &session;
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0) return true;
  return errno == ENOENT && epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void SessionThreads::Forget(int descriptor) { epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

void SessionThreads::Post(DirectSession& session) {
  absl::MutexLock lock(&mutex_);
  posted_.push_back(&session);
  WakeOne();
}

// Threads that are not idle look at the queue before they wait, so they need not be woken.
void SessionThreads::WakeOne() {
  if (idle_ > 0) eventfd_write(wake_, 1);
}

void SessionThreads::Run() {
  int in_a_row = 0;
  while (!stopped_) {
    DirectSession* session = nullptr;
    if (in_a_row < kPostedInARow) session = TakePosted();
    if (session != nullptr) {
      ++in_a_row;
    } else {
      session = AwaitReady(in_a_row < kPostedInARow);
      in_a_row = 0;
    }
    if (session != nullptr) serve_(*session);
  }
  // This thread may have read the wake-up of Stop together with others. So it wakes the next thread.
  eventfd_write(wake_, 1);
}

DirectSession* SessionThreads::TakePosted() {
  absl::MutexLock lock(&mutex_);
  if (posted_.empty()) {
    ++idle_;
    return nullptr;
  }
  DirectSession* const session = posted_.front();
  posted_.pop_front();
  if (!posted_.empty()) WakeOne();
  return session;
}

DirectSession* SessionThreads::AwaitReady(bool is_idle) {
  epoll_event event = {};
  const int found = epoll_wait(epoll_, &event, 1, is_idle ? -1 : 0);
  if (is_idle) --idle_;
  if (found <= 0 || stopped_) return nullptr;
  if (event.data.ptr != nullptr) return static_cast<DirectSession*>(event.data.ptr);
  eventfd_t times = 0;
  eventfd_read(wake_, &times);
  return nullptr;
}

}  // namespace hooke
