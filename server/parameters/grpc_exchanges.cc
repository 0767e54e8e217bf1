#include "server/parameters/grpc_exchanges.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

constexpr absl::Duration kSeatPatience = absl::Seconds(3);

size_t ThreadsFor(size_t asked) {
  if (asked > 0) return asked;
  return std::clamp<size_t>(size_t{2} * std::thread::hardware_concurrency(), 4, 64);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcExchanges>> GrpcExchanges::Start(Options options) {
  std::unique_ptr<GrpcExchanges> started(new GrpcExchanges(std::move(options)));
  absl::StatusOr<std::unique_ptr<TaskThreads>> threads = TaskThreads::Start(ThreadsFor(started->options_.threads));
  if (!threads.ok()) return threads.status();
  started->threads_ = *std::move(threads);
  absl::StatusOr<std::unique_ptr<ShardLoader>> loader = ShardLoader::Start(started->options_.store);
  if (!loader.ok()) return loader.status();
  started->loader_ = *std::move(loader);
  try {
    started->clock_thread_ = std::thread([started = started.get()] { started->Run(); });
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("this server's process can have no more threads (", error.what(),
                                               "); raise its limit (ulimit -u, TasksMax)"));
  }
  return started;
}

GrpcExchanges::GrpcExchanges(Options options) : options_(std::move(options)), seats_(kSeatPatience, options_.clock) {
  options_.store->OnDropped(this, [this] {
    absl::MutexLock lock(&mutex_);
    dropped_ = true;
    changed_.SignalAll();
  });
}

GrpcExchanges::~GrpcExchanges() {
  options_.store->IgnoreDropped(this);
  if (loader_ != nullptr) loader_->Stop();
  if (threads_ != nullptr) threads_->Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }
  if (clock_thread_.joinable()) clock_thread_.join();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GrpcExchanges::Serve(
    grpc::CallbackServerContext* context) {
  absl::Status refusal;
  {
    absl::MutexLock lock(&mutex_);
    if (++streams_ > options_.streams_max) {
      refusal = absl::UnavailableError(
          absl::StrCat("this server has ", options_.streams_max, " exchanges over gRPC, all that it takes; try again"));
    }
  }
  GrpcStream::Options options;
  options.context = context;
  options.store = options_.store;
  options.calls = &calls_;
  options.seats = &seats_;
  options.logger = options_.logger.get();
  options.number = ++begun_;
  options.moved = [this](GrpcStream& stream) {
    if (!stream.GoesOnAtOnce()) return Post(stream);
    GoOn(stream);
  };
  options.resumes = [this](GrpcStream& stream) { Post(stream); };
  options.opened = [this](GrpcStream& stream) { NoteOpened(stream); };
  options.left = [this] { NoteLeft(); };
  options.destroying = [this](GrpcStream& stream) { NoteDestroyed(stream); };
  return new GrpcStream(std::move(options), refusal);
}

bool GrpcExchanges::Close(absl::Duration timeout) {
  seats_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    ++departures_;  // A stream that has just asked for its seat asks again, and is refused.
    PostSeatless();
  }
  return calls_.Close(timeout);
}

void GrpcExchanges::Post(GrpcStream& stream) {
  threads_->Post([this, &stream] { GoOn(stream); });
}

// Unless GoOn says that something must happen here, the stream may be gone afterwards.
void GrpcExchanges::GoOn(GrpcStream& stream) {
  const std::shared_ptr<Shard> shard = stream.shard();
  uint64_t departures = 0;
  {
    absl::MutexLock lock(&mutex_);
    departures = departures_;
  }
  switch (stream.GoOn()) {
    case GrpcStream::Next::kOthers:
      return Watch(shard);
    case GrpcStream::Next::kLoad:
      return loader_->Load(stream.job_id(), [this, &stream](absl::Status status) {
        stream.Loaded(std::move(status));
        Post(stream);
      });
    case GrpcStream::Next::kSeat:
      return AwaitSeat(stream, departures);
    case GrpcStream::Next::kResumed:
    case GrpcStream::Next::kEnded:
      return;
  }
}

// A shard that is dropped before the stream is noted here is closed already.
void GrpcExchanges::NoteOpened(GrpcStream& stream) {
  absl::MutexLock lock(&mutex_);
  opened_[&stream] = stream.shard();
  if (!stream.shard()->closed()) return;
  dropped_ = true;
  changed_.SignalAll();
}

void GrpcExchanges::NoteDestroyed(GrpcStream& stream) {
  absl::MutexLock lock(&mutex_);
  opened_.erase(&stream);
  --streams_;
}

void GrpcExchanges::AwaitSeat(GrpcStream& stream, uint64_t departures) {
  absl::MutexLock lock(&mutex_);
  seatless_.push_back(&stream);
  if (departures != departures_) PostSeatless();
  changed_.SignalAll();
}

void GrpcExchanges::NoteLeft() {
  absl::MutexLock lock(&mutex_);
  ++departures_;
  PostSeatless();
}

void GrpcExchanges::PostSeatless() {
  for (GrpcStream* stream : std::exchange(seatless_, {})) Post(*stream);
}

// GoOn calls this after each turn that waits. The shard knows the turn's deadline by then, so later turns are watched,
// too.
void GrpcExchanges::Watch(const std::shared_ptr<Shard>& shard) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration until = shard->until_look();
  if (until == absl::InfiniteDuration()) return;
  watched_.insert(shard);
  const absl::Time look_at = options_.clock->Now() + until;
  if (look_at >= look_at_) return;
  look_at_ = look_at;
  changed_.SignalAll();
}

void GrpcExchanges::Run() {
  while (true) {
    std::vector<std::shared_ptr<Shard>> used;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopped_ && !dropped_ && options_.clock->Now() < Deadline()) {
        options_.clock->Wait(changed_, mutex_, Deadline());
      }
      if (stopped_) return;
      CancelDropped(used);
      for (const GrpcStream* stream : seatless_) {
        if (options_.clock->Now() < stream->give_up()) continue;
        PostSeatless();
        break;
      }
      if (options_.clock->Now() < look_at_) continue;
    }
    LookAtShards();
  }
}

absl::Time GrpcExchanges::Deadline() const {
  absl::Time deadline = look_at_;
  for (const GrpcStream* stream : seatless_) deadline = std::min(deadline, stream->give_up());
  return deadline;
}

void GrpcExchanges::LookAtShards() {
  std::vector<std::shared_ptr<Shard>> shards;
  {
    absl::MutexLock lock(&mutex_);
    shards.assign(watched_.begin(), watched_.end());
  }
  for (const std::shared_ptr<Shard>& shard : shards) {
    if (shard->until_look() <= absl::ZeroDuration()) shard->LookAgain();
  }
  absl::MutexLock lock(&mutex_);
  look_at_ = absl::InfiniteFuture();
  for (auto watched = watched_.begin(); watched != watched_.end();) {
    const absl::Duration until = (*watched)->until_look();
    if (until == absl::InfiniteDuration()) {
      watched = watched_.erase(watched);
      continue;
    }
    look_at_ = std::min(look_at_, options_.clock->Now() + until);
    ++watched;
  }
}

// A stream keeps the memory of its closed shard, so it is cancelled. The peer learns when it connects again that its
// job or its generation has ended.
void GrpcExchanges::CancelDropped(std::vector<std::shared_ptr<Shard>>& used) {
  if (!std::exchange(dropped_, false)) return;
  for (auto watched = watched_.begin(); watched != watched_.end();) {
    used.push_back(*watched);
    watched = used.back()->closed() ? watched_.erase(watched) : std::next(watched);
  }
  for (const auto& [stream, opened] : opened_) {
    used.push_back(opened.lock());
    if (used.back() != nullptr && used.back()->closed()) stream->Cancel();
  }
}

}  // namespace hooke
