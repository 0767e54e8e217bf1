#include "worker/daemon/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "grpcpp/grpcpp.h"
#include "wire/channel.h"
#include "wire/grpc_status.h"

namespace hooke {
namespace {

std::shared_ptr<grpc::Channel> DialCoordinator(const SessionOptions& options) {
  grpc::ChannelArguments arguments;
  // Each try gets a connection of its own, because we do the backoff between tries ourselves. A shared connection
  // would add gRPC's own backoff.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // We set keepalive because it also sets TCP_USER_TIMEOUT: unanswered heartbeats then break the connection to a
  // machine that is gone. The pings themselves are rare enough for any server's limits.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 310000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  return OpenChannel(options.coordinator, arguments, options.credential);
}

bool SameGroup(const v1::GroupId& a, const v1::GroupId& b) {
  return a.job_id() == b.job_id() && a.group() == b.group() && a.incarnation() == b.incarnation();
}

// Returns whether the coordinator's machine says that nothing listens at its port. gRPC has no code of its own for it.
bool IsNotRunning(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StrContains(status.message(), "Connection refused");
}

bool IsRefusal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAlreadyExists || status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kUnimplemented;
}

}  // namespace

Session::Session(SessionOptions options, SessionCallbacks callbacks)
    : options_(std::move(options)), callbacks_(std::move(callbacks)), outbox_(options_.outbox) {}

void Session::Start() {
  thread_ = std::thread([this] { Run(); });
}

Session::~Session() {
  {
    absl::MutexLock lock(&mutex_);
    shutdown_ = true;
    Changed();
    if (context_ != nullptr) context_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

void Session::AddEvent(const v1::GroupId& group, v1::GroupEvent event) {
  absl::MutexLock lock(&mutex_);
  if (event.report().event().has_profile()) AddClock(*event.mutable_report()->mutable_event()->mutable_profile());
  AddTime(event);
  outbox_.AddEvent(group, std::move(event));
  work_.SignalAll();
}

void Session::AddTime(v1::GroupEvent& event) {
  if (!options_.clock || !(event.has_started() || event.report().event().has_begun())) return;
  const int64_t now = options_.clock();
  const std::optional<ClockOffset::Estimate> estimate = clock_offset_.Best(now);
  if (estimate.has_value()) event.set_unix_us((now + estimate->offset) / 1000);
}

void Session::AddClock(v1::RankProfile& profile) {
  profile.set_machine(options_.machine);
  profile.clear_clock();
  if (!options_.clock) return;
  const std::optional<ClockOffset::Estimate> estimate = clock_offset_.Best(options_.clock());
  if (!estimate.has_value()) return;
  profile.mutable_clock()->set_offset_ns(estimate->offset);
  profile.mutable_clock()->set_error_ns(estimate->error);
}

void Session::AddLog(const v1::GroupId& group, absl::string_view source, absl::string_view text) {
  absl::MutexLock lock(&mutex_);
  outbox_.AddLog(group, source, text);
  work_.SignalAll();
}

bool Session::EndIsPending(const v1::GroupId& group) {
  absl::MutexLock lock(&mutex_);
  return outbox_.HasEnded(group);
}

SessionFigures Session::Figures() {
  absl::MutexLock lock(&mutex_);
  SessionFigures figures = figures_;
  figures.connected = link_ == Link::kWelcomed;
  return figures;
}

CoordinatorContact Session::Contact() {
  absl::MutexLock lock(&mutex_);
  return contact_;
}

void Session::NoteContact(absl::Time heard) {
  absl::MutexLock lock(&mutex_);
  contact_.heard = std::max(contact_.heard, heard);
}

bool Session::Flush(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto settled = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return outbox_.empty() || link_ != Link::kWelcomed; };
  changed_.Await(mutex_, deadline, settled);
  return outbox_.empty();
}

void Session::AnnounceEnd() {
  absl::MutexLock lock(&mutex_);
  ends_ = true;
  work_.SignalAll();
}

void Session::SayGoodbye(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  if (link_ != Link::kWelcomed || !outbox_.empty()) return;
  goodbye_ = true;
  work_.SignalAll();
  auto down = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return link_ == Link::kDown; };
  changed_.Await(mutex_, deadline, down);
}

void Session::Run() {
  absl::Duration backoff = options_.backoff_min;
  bool told = false;  // Whether it was logged that the coordinator refuses our token.
  while (true) {
    const absl::Time began = SteadyTime();
    const StreamEnd end = RunStream();
    // A coordinator that is started later gives each worker a whole lease from then on.
    if (IsNotRunning(end.status)) NoteContact(began);
    if (!was_welcomed() && IsRefusal(end.status)) {
      callbacks_.refused(end.status);
      return;
    }
    if (end.welcomed) backoff = options_.backoff_min;
    if (is_ending()) return;
    const bool unauthenticated = absl::IsUnauthenticated(end.status);
    if (!unauthenticated) {
      options_.logger->warn("coordinator {}: {}; trying again in {}", options_.coordinator, end.status.ToString(),
                            absl::FormatDuration(backoff));
    } else if (!told) {
      options_.logger->error("coordinator {} refuses this worker: {}; trying again until it does not",
                             options_.coordinator, std::string(end.status.message()));
    }
    told = unauthenticated;
    absl::MutexLock lock(&mutex_);
    const auto ends = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return shutdown_; };
    if (changed_.Await(mutex_, SteadyTime() + backoff, ends)) return;
    backoff = std::min(2 * backoff, options_.backoff_max);
  }
}

Session::StreamEnd Session::RunStream() {
  grpc::ClientContext context;
  {
    absl::MutexLock lock(&mutex_);
    if (shutdown_) return {absl::CancelledError("shutting down"), false};
    context_ = &context;
    link_ = Link::kConnecting;
    Changed();
  }
  const std::unique_ptr<v1::Coordinator::Stub> stub = v1::Coordinator::NewStub(DialCoordinator(options_));
  const std::unique_ptr<Stream> stream = stub->WorkerSession(&context);
  std::thread reader([this, &stream] { Read(*stream); });
  const bool welcomed = WriteHello(*stream) && AwaitWelcome();
  if (welcomed) WriteUntilBroken(*stream);
  const bool ended_by_peer = AwaitDown();
  if (!ended_by_peer) context.TryCancel();
  reader.join();
  const grpc::Status status = stream->Finish();
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
  }
  if (!ended_by_peer && !welcomed) {
    return {
        absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(options_.welcome_within))),
        false};
  }
  return {status.ok() ? absl::UnavailableError("it has ended the session") : FromGrpc(status), welcomed};
}

bool Session::WriteHello(Stream& stream) {
  v1::WorkerMessage message;
  v1::WorkerHello* hello = message.mutable_hello();
  *hello = options_.hello;
  hello->set_takes_batches(true);
  for (const v1::GroupId& group : callbacks_.running_groups()) *hello->add_running() = group;
  {
    // A group whose end was not delivered yet counts as running. Otherwise the coordinator would take it for lost and
    // place it again.
    absl::MutexLock lock(&mutex_);
    hello_sent_ = SteadyTime();
    outbox_.Rewind();
    for (const v1::GroupId& group : outbox_.EndedGroups()) {
      const auto same = [&group](const v1::GroupId& other) { return SameGroup(group, other); };
      if (std::none_of(hello->running().begin(), hello->running().end(), same)) *hello->add_running() = group;
    }
  }
  return stream.Write(message);
}

bool Session::AwaitWelcome() {
  absl::MutexLock lock(&mutex_);
  auto answered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return shutdown_ || link_ != Link::kConnecting; };
  changed_.Await(mutex_, SteadyTime() + options_.welcome_within, answered);
  return link_ == Link::kWelcomed;
}

// Waits up to a second until the reader has seen the stream's end. Returns false if it has not; the caller must then
// cancel the stream.
bool Session::AwaitDown() {
  absl::MutexLock lock(&mutex_);
  if (link_ == Link::kConnecting) return false;
  auto down = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return shutdown_ || link_ == Link::kDown; };
  changed_.Await(mutex_, SteadyTime() + absl::Seconds(1), down);
  return link_ == Link::kDown;
}

void Session::AwaitWork(bool announced, absl::Time next_heartbeat) {
  auto must_write = [this, announced]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return shutdown_ || goodbye_ || (ends_ && !announced) || link_ == Link::kDown || outbox_.HasUrgent();
  };
  while (!must_write() && !outbox_.HasNext() && SteadyTime() < next_heartbeat) work_.WaitUntil(mutex_, next_heartbeat);
  if (must_write() || !outbox_.HasNext()) return;
  const absl::Time send_at = options_.times.SendAt(false, SteadyTime(), next_heartbeat);
  while (!must_write() && SteadyTime() < send_at) work_.WaitUntil(mutex_, send_at);
}

void Session::WriteUntilBroken(Stream& stream) {
  absl::Time next_heartbeat = SteadyTime() + options_.heartbeat_every;
  bool announced = false;
  bool more = false;  // The outbox had more than one write takes.
  while (true) {
    std::vector<v1::WorkerMessage> messages;
    {
      absl::MutexLock lock(&mutex_);
      if (!more) AwaitWork(announced, next_heartbeat);
      if (shutdown_ || link_ == Link::kDown) return;
      // The announcement that the worker ends has a write of its own. It comes before the ends of groups, so that the
      // coordinator does not count these as failures.
      if (ends_ && !std::exchange(announced, true)) {
        messages.emplace_back().mutable_ends();
      } else {
        messages = outbox_.TakeSome();
        changed_.SignalAll();
      }
      if (messages.empty() && goodbye_) break;
      more = outbox_.HasNext();
    }
    const absl::Time now = SteadyTime();
    const bool shares = !messages.empty() && !messages.front().has_ends();
    const bool heartbeat = now >= next_heartbeat || (shares && options_.times.TakesHeartbeat(now, next_heartbeat));
    if (!Write(stream, std::move(messages), heartbeat)) return;
    if (heartbeat) next_heartbeat = SteadyTime() + options_.heartbeat_every;
  }
  v1::WorkerMessage goodbye;
  goodbye.mutable_goodbye();
  stream.Write(goodbye);
}

bool Session::Write(Stream& stream, std::vector<v1::WorkerMessage> messages, bool heartbeat) {
  if (heartbeat) messages.emplace_back().mutable_heartbeat()->set_sent_ns(options_.clock ? options_.clock() : 0);
  if (messages.empty()) return true;
  bool batches;
  {
    absl::MutexLock lock(&mutex_);
    batches = batches_ && !messages.front().has_ends();
    if (heartbeat) figures_.heartbeat = SteadyTime();
  }
  if (batches) return stream.Write(InOne(std::move(messages)));
  return std::all_of(messages.begin(), messages.end(), [&](const auto& message) { return stream.Write(message); });
}

void Session::Read(Stream& stream) {
  v1::WorkerCommand command;
  while (stream.Read(&command)) HandleCommand(command);
  absl::MutexLock lock(&mutex_);
  link_ = Link::kDown;
  Changed();
}

void Session::Changed() {
  work_.SignalAll();
  changed_.SignalAll();
}

void Session::HandleCommand(const v1::WorkerCommand& command) {
  for (const v1::WorkerCommand& one : command.batch().commands()) HandleCommand(one);
  {
    absl::MutexLock lock(&mutex_);
    figures_.heard = SteadyTime();
  }
  if (command.has_welcome()) return HandleWelcome(command.welcome());
  if (command.has_start()) return callbacks_.start_group(command.start());
  if (command.has_stop()) return callbacks_.stop_group(command.stop());
  if (command.has_launch()) return callbacks_.launch_part(command.launch());
  if (command.has_clock()) return HandleClock(command.clock());
  // Other commands come from a newer coordinator, and this version does not know them.
  if (!command.has_seen()) return;
  absl::MutexLock lock(&mutex_);
  outbox_.Seen(command.seen().group(), command.seen().number());
  changed_.SignalAll();
}

void Session::HandleWelcome(const v1::Welcome& welcome) {
  bool first;
  {
    absl::MutexLock lock(&mutex_);
    if (link_ == Link::kConnecting) link_ = Link::kWelcomed;
    changed_.SignalAll();
    first = !ever_welcomed_;
    ever_welcomed_ = true;
    batches_ = welcome.takes_batches();
    ++figures_.welcomes;
    contact_.heard = std::max(contact_.heard, hello_sent_);
    // Without a clock there are no echoes, so the worker would not know that it is heard.
    if (options_.clock) contact_.lease = absl::Milliseconds(welcome.lease_ms());
  }
  options_.logger->info("coordinator {}: welcome", options_.coordinator);
  if (first) callbacks_.welcomed();
}

void Session::HandleClock(const v1::ClockEcho& echo) {
  if (!options_.clock) return;
  const int64_t now = options_.clock();
  NoteContact(SteadyTime() - absl::Nanoseconds(now - echo.sent_ns()));
  absl::MutexLock lock(&mutex_);
  clock_offset_.Add({echo.sent_ns(), echo.unix_ns(), now});
}

bool Session::is_ending() {
  absl::MutexLock lock(&mutex_);
  return shutdown_ || goodbye_;
}

bool Session::was_welcomed() {
  absl::MutexLock lock(&mutex_);
  return ever_welcomed_;
}

}  // namespace hooke
