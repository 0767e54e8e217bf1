#include "worker/exchange/in_memory_server.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <utility>

#include "clocks/steady_time.h"
#include "proto/job.pb.h"
#include "worker/report/want_of_server.h"

namespace hooke {

class InMemoryStream : public ExchangeStream {
 public:
  InMemoryStream(InMemoryServer* server, v1::Sender sender) : server_(server), sender_(std::move(sender)) {
    absl::MutexLock lock(&server_->mutex_);
    generation_ = server_->generation_;
    ++server_->streams_;
  }

  bool Write(const BlocksToSend& blocks) override {
    absl::MutexLock lock(&server_->mutex_);
    if (Broken()) return false;
    requests_.push_back({blocks.sequence, blocks.first, {blocks.values.begin(), blocks.values.end()}});
    return true;
  }

  // The server has no thread of its own: each Read applies one message.
  bool Read(AnsweredBlocks* response) override {
    absl::MutexLock lock(&server_->mutex_);
    while (true) {
      auto ready = [this] { return Ready(); };
      server_->mutex_.Await(absl::Condition(&ready));
      if (Broken()) return false;
      const AnsweredBlocks request = std::move(requests_.front());
      requests_.pop_front();
      absl::StatusOr<AnsweredBlocks> answer = server_->Apply(sender_, request);
      if (!answer.ok()) {
        status_ = SaidByServer(answer.status());
        return false;
      }
      if (server_->losing_) continue;
      if (server_->break_after_ > 0 && --server_->break_after_ == 0) {
        server_->break_after_ = -1;
        ++server_->generation_;
        return false;
      }
      *response = *std::move(answer);
      return true;
    }
  }

  void Cancel() override {
    absl::MutexLock lock(&server_->mutex_);
    if (status_.ok()) status_ = absl::CancelledError("cancelled");
  }

  absl::Status Finish() override {
    absl::MutexLock lock(&server_->mutex_);
    return status_.ok() ? absl::UnavailableError("stream broken") : status_;
  }

 private:
  bool Broken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(server_->mutex_) {
    return !status_.ok() || !server_->reachable_ || generation_ != server_->generation_;
  }
  // Await calls it with the server's mutex held, which the analysis cannot see.
  bool Ready() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return Broken() || (server_->answering_ && !server_->waiting_ && !requests_.empty());
  }

  InMemoryServer* const server_;
  int generation_ = 0;
  const v1::Sender sender_;
  // Guarded by the server's mutex.
  std::deque<AnsweredBlocks> requests_;
  absl::Status status_;
};

class InMemoryCalls : public ServerCalls {
 public:
  explicit InMemoryCalls(InMemoryServer* server) : server_(server) {}

  const std::string& address() const override { return server_->address_; }
  absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request, absl::Time) override {
    return server_->Attach(request);
  }
  absl::Status Initialize(const InitialValues& values, absl::Time) override { return server_->Initialize(values); }
  absl::Status Pull(const std::string&, absl::Time,
                    const std::function<absl::Status(const v1::PullResponse&)>& sink) override {
    return server_->Pull(sink);
  }
  absl::StatusOr<v1::PaceResponse> Pace(const v1::PaceRequest& request, absl::Time) override {
    return server_->Pace(request);
  }
  absl::Status Save(const v1::SaveRequest& request, absl::Time) override { return server_->Save(request); }
  absl::Status KeepState(const StateToKeep& state, absl::Time) override { return server_->KeepState(state); }
  absl::StatusOr<FetchedState> FetchState(const v1::FetchStateRequest& request, absl::Time) override {
    return server_->FetchState(request);
  }
  absl::StatusOr<v1::LocateResponse> Locate(const v1::Sender& sender, absl::Time deadline) override {
    return server_->Locate(sender, deadline);
  }
  std::shared_ptr<ExchangeStream> OpenExchange(const v1::Sender& sender) override {
    return std::make_shared<InMemoryStream>(server_, sender);
  }

 private:
  InMemoryServer* const server_;
};

std::unique_ptr<ServerCalls> InMemoryServer::Dial() { return std::make_unique<InMemoryCalls>(this); }

absl::StatusOr<v1::AttachResponse> InMemoryServer::Attach(const v1::AttachRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (!reachable_) return absl::UnavailableError("connection refused");
  v1::AttachResponse response;
  response.set_block_values(kBlockValues);
  response.set_window_blocks(16);
  response.set_initialize_seconds(20);
  response.set_state(v1::AttachResponse::WAIT);
  if (waits_ > 0) {
    --waits_;
    return response;
  }
  uint64_t values = 0;
  for (const v1::Parameter& parameter : request.layout().parameters()) {
    uint64_t product = 1;
    for (uint64_t extent : parameter.shape()) product *= extent;
    values += product;
  }
  const Cut cut{request.job().shard_index(), request.job().shard_count()};
  if (center_.empty()) {
    job_ = request;
    shard_ = Partition(values).ShardValues(cut);
    const RuleName name = request.job().rule() == v1::AveragingSpec::NONE ? RuleName::kNone : RuleName::kElastic;
    absl::StatusOr<std::unique_ptr<CenterRule>> rule = MakeCenterRule({name, request.job().alpha()});
    if (!rule.ok()) return rule.status();
    rule_ = *std::move(rule);
    response.set_state(v1::AttachResponse::INITIALIZE);
    return response;
  }
  if (request.layout().SerializeAsString() != job_.layout().SerializeAsString()) {
    return absl::FailedPreconditionError("the layout differs");
  }
  const uint32_t present = job_.job().first_incarnation();
  const uint32_t asked = request.job().first_incarnation();
  if (asked < present) return absl::AbortedError("a generation that is over");
  if (absl::Status status = CheckSender(request.sender()); !status.ok()) return status;
  if (asked > present) {
    if (absl::Status status = BeginGeneration(request); !status.ok()) return status;
  }
  uint64_t lowest = std::numeric_limits<uint64_t>::max();
  for (uint64_t first = shard_.begin; first < shard_.end; first += kBlockValues) {
    const uint64_t sequence = answered_[{request.sender().group(), first}].sequence;
    lowest = std::min(lowest, std::max(sequence, job_.job().first_step()));
  }
  incarnations_[request.sender().group()] = request.sender().incarnation();
  response.set_state(v1::AttachResponse::READY);
  response.set_last_sequence(lowest);
  return response;
}

// Keeps the center and stops_. Forgets what it knows of the groups, except the states of groups that still exist. As on
// a real server, the new generation is on disk at once.
absl::Status InMemoryServer::BeginGeneration(const v1::AttachRequest& request) {
  const RuleName name = request.job().rule() == v1::AveragingSpec::NONE ? RuleName::kNone : RuleName::kElastic;
  absl::StatusOr<std::unique_ptr<CenterRule>> rule = MakeCenterRule({name, request.job().alpha()});
  if (!rule.ok()) return rule.status();
  rule_ = *std::move(rule);
  job_ = request;
  answered_.clear();
  ended_.clear();
  paces_.clear();
  incarnations_.clear();
  disk_center_ = center_;
  disk_answered_.clear();
  ++generation_;  // Breaks the streams of the earlier generation.
  for (auto state = states_.begin(); state != states_.end();) {
    state = std::get<0>(state->first) >= request.job().groups() ? states_.erase(state) : std::next(state);
  }
  return absl::OkStatus();
}

absl::Status InMemoryServer::CheckSender(const v1::Sender& sender) const {
  if (sender.incarnation() < job_.job().first_incarnation()) return absl::AbortedError("a generation that is over");
  const auto attached = incarnations_.find(sender.group());
  if (attached == incarnations_.end() || sender.incarnation() >= attached->second) return absl::OkStatus();
  return absl::AbortedError("replaced");
}

absl::Status InMemoryServer::Initialize(const InitialValues& values) {
  absl::MutexLock lock(&mutex_);
  if (!reachable_) return absl::UnavailableError("connection refused");
  if (!center_.empty() && values.sequence == 0) return absl::OkStatus();
  absl::Span<const float> mine = values.vector.subspan(values.shard.begin, values.shard.size());
  center_.assign(mine.begin(), mine.end());
  for (uint64_t first = shard_.begin; values.sequence > 0 && first < shard_.end; first += kBlockValues) {
    answered_[{values.sender.group(), first}] = {values.sender.incarnation(), values.sequence, {}};
  }
  disk_center_ = center_;
  disk_answered_.clear();
  return absl::OkStatus();
}

absl::StatusOr<v1::PaceResponse> InMemoryServer::Pace(const v1::PaceRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (!reachable_) return absl::UnavailableError("connection refused");
  if (absl::Status status = CheckSender(request.sender()); !status.ok()) return status;
  if (request.steps_per_second() > 0) paces_[request.sender().group()] = request.steps_per_second();
  // next_fragment stays 0, because this server has no rounds.
  v1::PaceResponse response;
  response.set_stops(stops_);
  for (const auto& [group, pace] : paces_) {
    response.set_fastest_steps_per_second(std::max(response.fastest_steps_per_second(), pace));
  }
  return response;
}

absl::StatusOr<v1::LocateResponse> InMemoryServer::Locate(const v1::Sender& sender, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto answers = [this] { return AnswersLocate(); };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&answers), deadline - SteadyTime())) {
    return absl::DeadlineExceededError("no answer");
  }
  if (!reachable_) return absl::UnavailableError("connection refused");
  if (failing_questions_ > 0) {
    --failing_questions_;
    return absl::DeadlineExceededError("no answer");
  }
  v1::LocateResponse response;
  if (restarts_ == 0) return response;
  response.mutable_restored()->set_loaded_unix_us(restarts_);
  uint64_t highest = 0;
  for (const auto& [key, answered] : loaded_) {
    if (key.first == sender.group()) highest = std::max(highest, answered.sequence);
  }
  response.mutable_restored()->set_sequence(highest);
  return response;
}

absl::Status InMemoryServer::Pull(const std::function<absl::Status(const v1::PullResponse&)>& sink) {
  std::vector<v1::PullResponse> messages;
  {
    absl::MutexLock lock(&mutex_);
    if (!reachable_) return absl::UnavailableError("connection refused");
    if (center_.empty()) return absl::NotFoundError("no such job");
    v1::PullResponse::Header* header = messages.emplace_back().mutable_header();
    *header->mutable_layout() = job_.layout();
    header->set_shard_index(job_.job().shard_index());
    header->set_shard_count(job_.job().shard_count());
    for (uint64_t first = 0; first < center_.size(); first += kBlockValues) {
      v1::Block* block = messages.emplace_back().mutable_block();
      const uint64_t count = std::min<uint64_t>(kBlockValues, center_.size() - first);
      block->set_first(shard_.begin + first);
      block->set_values(center_.data() + first, count * sizeof(float));
    }
  }
  for (const v1::PullResponse& message : messages) {
    if (absl::Status status = sink(message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<AnsweredBlocks> InMemoryServer::Apply(const v1::Sender& sender, const AnsweredBlocks& sent) {
  if (!error_.ok()) return error_;
  if (center_.empty()) return absl::NotFoundError("no such job");
  if (absl::Status status = CheckSender(sender); !status.ok()) return status;
  AnsweredBlocks all = {sent.sequence, sent.first, {}};
  for (uint64_t done = 0; done < sent.values.size(); done += kBlockValues) {
    const absl::Span<const float> x = absl::MakeConstSpan(sent.values).subspan(done, kBlockValues);
    Answered& last = answered_[{sender.group(), sent.first + done}];
    if (last.incarnation == sender.incarnation() && last.sequence == sent.sequence) {
      ++repeated_;
    } else if (last.incarnation == sender.incarnation() && last.sequence > sent.sequence) {
      return absl::InvalidArgumentError("sequences grow");
    } else {
      last = {sender.incarnation(), sent.sequence, std::vector<float>(x.size())};
      Contribution from;
      from.group = sender.group();
      from.values = x;
      CenterBlock block;
      block.values = absl::MakeSpan(center_).subspan(sent.first + done - shard_.begin, x.size());
      rule_->Apply({&from, 1}, block, absl::MakeSpan(last.answer));
      ++applied_;
    }
    all.values.insert(all.values.end(), last.answer.begin(), last.answer.end());
  }
  return all;
}

std::vector<std::unique_ptr<InMemoryServer>> TwoInMemoryServers() {
  std::vector<std::unique_ptr<InMemoryServer>> servers;
  servers.push_back(std::make_unique<InMemoryServer>("first:1"));
  servers.push_back(std::make_unique<InMemoryServer>("second:2"));
  return servers;
}

}  // namespace hooke
