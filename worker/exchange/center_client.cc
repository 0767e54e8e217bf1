#include "worker/exchange/center_client.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clocks/steady_time.h"
#include "wire/layout_difference.h"
#include "worker/exchange/server_exchange.h"
#include "worker/report/want_of_server.h"

namespace hooke {
namespace {

// Returns OK if the layouts are equal, otherwise FAILED_PRECONDITION with the first parameter that differs.
absl::Status CompareLayouts(const v1::Layout& center, const v1::Layout& model) {
  const std::optional<LayoutDifference> differs = FindDifference(center, model);
  if (!differs.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("parameter ", differs->parameter, " of the center is ",
                                                    differs->center, " but the model has ", differs->model));
}

// Copies the messages of one shard's Pull, which come in order, into the vector.
class ShardReader {
 public:
  ShardReader(const v1::Layout& layout, Cut cut, const Partition& partition, absl::Span<float> vector)
      : layout_(layout), cut_(cut), shard_(partition.ShardValues(cut)), next_(shard_.begin), vector_(vector) {}

  absl::Status Take(const v1::PullResponse& message) {
    if (message.has_header()) return TakeHeader(message.header());
    const v1::Block& block = message.block();
    const uint64_t values = block.values().size() / sizeof(float);
    if (!has_header_ || block.first() != next_ || block.values().size() % sizeof(float) != 0 ||
        values > shard_.end - next_) {
      return absl::InternalError(absl::StrCat("it sent ", block.values().size(), " bytes at value ", block.first(),
                                              " where value ", next_, " was due"));
    }
    std::memcpy(vector_.data() + next_, block.values().data(), block.values().size());
    next_ += values;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    if (next_ == shard_.end && has_header_) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("its shard ends at value ", next_, " instead of ", shard_.end));
  }

 private:
  absl::Status TakeHeader(const v1::PullResponse::Header& header) {
    if (header.shard_index() != cut_.index || header.shard_count() != cut_.parts) {
      return absl::FailedPreconditionError(absl::StrCat("it holds shard ", header.shard_index(), " of ",
                                                        header.shard_count(), ", not ", cut_.index, " of ",
                                                        cut_.parts));
    }
    has_header_ = true;
    return CompareLayouts(header.layout(), layout_);
  }

  const v1::Layout& layout_;
  const Cut cut_;
  const Range shard_;
  uint64_t next_;
  absl::Span<float> vector_;
  bool has_header_ = false;
};

absl::Status AtServer(const std::string& address, const absl::Status& status) {
  return ForWantOf(address, absl::Status(status.code(), absl::StrCat("server ", address, ": ", status.message())));
}

}  // namespace

v1::Layout LayoutMessage(const ModelLayout& layout, const std::optional<v1::ModelDescription>& model) {
  v1::Layout message;
  if (model.has_value()) *message.mutable_model() = *model;
  auto add = [&message](const NamedShape& shape) {
    v1::Parameter* parameter = message.add_parameters();
    parameter->set_name(shape.name);
    parameter->set_type(v1::Parameter::FLOAT32);
    for (uint64_t extent : shape.shape) parameter->add_shape(extent);
  };
  for (const NamedShape& shape : layout.parameters) add(shape);
  for (const NamedShape& shape : layout.buffers) add(shape);
  return message;
}

CenterClient::CenterClient(CenterOptions options)
    : options_(std::move(options)), layout_(LayoutMessage(options_.layout, options_.model)) {}

absl::StatusOr<Attached> CenterClient::Attach(absl::Span<const float> vector, absl::Time deadline) const {
  Attached all{std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint32_t>::max()};
  for (size_t i = 0; i < options_.servers.size(); ++i) {
    absl::StatusOr<Attached> one = AttachShard(i, vector, deadline);
    if (!one.ok()) return one.status();
    // A server with an empty shard never sees an exchange, so its sequence would hold the group at 0.
    if (ShardOf(i).empty()) continue;
    all.last_sequence = std::min(all.last_sequence, one->last_sequence);
    all.window_blocks = std::min(all.window_blocks, one->window_blocks);
  }
  if (all.window_blocks == std::numeric_limits<uint32_t>::max()) return Attached{};
  return all;
}

absl::StatusOr<Attached> CenterClient::AttachShard(size_t server, absl::Span<const float> vector,
                                                   absl::Time deadline) const {
  const std::string& address = options_.servers[server]->address();
  while (true) {
    if (absl::Status status = CheckGoing(); !status.ok()) return status;
    absl::StatusOr<v1::AttachResponse> response = AttachOnce(server, vector, deadline);
    if (response.ok() && response->state() == v1::AttachResponse::READY) {
      const uint64_t block_values = options_.partition.block_values();
      if (response->block_values() == block_values && response->window_blocks() > 0) {
        return Attached{response->last_sequence(), response->window_blocks()};
      }
      return absl::FailedPreconditionError(absl::StrCat("server ", address, " has blocks of ", response->block_values(),
                                                        " values and a window of ", response->window_blocks(),
                                                        "; this rank wants ", block_values,
                                                        " and at least 1: install one version everywhere"));
    }
    if (!response.ok() && IsFatalExchangeError(response.status())) return response.status();
    if (SteadyTime() + options_.retry_pause >= deadline) {
      return ForWantOf(
          address,
          absl::DeadlineExceededError(
              response.ok()
                  ? absl::StrCat("server ", address, ": another group is still initializing the center")
                  : absl::StrCat("no center at ", address, " yet; last error: ", response.status().message())));
    }
    // After we have sent the initial values, we ask again without a pause.
    if (!response.ok() || response->state() == v1::AttachResponse::WAIT) options_.sleep(options_.retry_pause);
  }
}

v1::AttachRequest CenterClient::RequestFor(const Cut& cut) const {
  v1::AttachRequest request;
  *request.mutable_sender() = options_.sender;
  *request.mutable_job() = options_.job;
  request.mutable_job()->set_job_key(options_.sender.job_key());
  request.mutable_job()->set_shard_index(static_cast<uint32_t>(cut.index));
  request.mutable_job()->set_shard_count(static_cast<uint32_t>(cut.parts));
  *request.mutable_layout() = layout_;
  return request;
}

// Attaches once, and sends the initial values if the server asks for them.
absl::StatusOr<v1::AttachResponse> CenterClient::AttachOnce(size_t server, absl::Span<const float> vector,
                                                            absl::Time deadline) const {
  const Cut cut{server, options_.servers.size()};
  absl::StatusOr<v1::AttachResponse> response =
      options_.servers[server]->Attach(RequestFor(cut), std::min(deadline, SteadyTime() + options_.call_timeout));
  if (!response.ok() || response->state() != v1::AttachResponse::INITIALIZE) return response;
  absl::Status sent =
      options_.servers[server]->Initialize({options_.sender, options_.partition, ShardOf(server), vector}, deadline);
  if (!sent.ok()) return sent;
  return response;
}

absl::Status CenterClient::AttachAgain(absl::Time deadline) const {
  return options_.servers[0]->Attach(RequestFor({0, options_.servers.size()}), deadline).status();
}

absl::Status CenterClient::CheckGoing() const {
  return stopped_ ? absl::CancelledError("the group has failed") : absl::OkStatus();
}

absl::Status CenterClient::Pull(absl::Span<float> vector, absl::Time deadline) const {
  for (size_t i = 0; i < options_.servers.size(); ++i) {
    // A small center is not on every server. One that has nothing of it may be away.
    if (ShardOf(i).empty()) continue;
    if (absl::Status status = PullShard(i, vector, deadline); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CenterClient::Rewind(uint64_t step, absl::Span<const float> vector, absl::Time deadline) const {
  for (size_t i = 0; i < options_.servers.size(); ++i) {
    if (absl::Status status = CheckGoing(); !status.ok()) return status;
    if (ShardOf(i).empty()) continue;
    absl::Status status =
        options_.servers[i]->Initialize({options_.sender, options_.partition, ShardOf(i), vector, step}, deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::PaceResponse> CenterClient::Pace(double steps_per_second, absl::Time deadline) const {
  v1::PaceRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_steps_per_second(steps_per_second);
  return options_.servers[0]->Pace(request, deadline);
}

absl::Status CenterClient::Save(uint64_t sequence, Ends ends, absl::Span<const float> vector,
                                absl::Time deadline) const {
  v1::SaveRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_ends(true);
  request.set_stops(ends == Ends::kJob);
  if (ends == Ends::kJob) {
    // A server that has gone back to a snapshot may not know this start of the group, and then takes no stop from it.
    if (absl::Status status = Attach(vector, deadline).status(); !status.ok()) return status;
  }
  for (ServerCalls* server : options_.servers) {
    if (absl::Status status = CheckGoing(); !status.ok()) return status;
    if (absl::Status status = server->Save(request, deadline); !status.ok()) return status;
  }
  // Ask only after the save: an exchange that the server still knows now is on its disk and survives a restart.
  absl::StatusOr<Attached> attached = Attach(vector, deadline);
  if (!attached.ok()) return attached.status();
  if (attached->last_sequence >= sequence) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("a server was started again and has lost the exchange at step ", sequence,
                                          "; the group goes on from step ", attached->last_sequence));
}

absl::Status CenterClient::PullShard(size_t server, absl::Span<float> vector, absl::Time deadline) const {
  ServerCalls& calls = *options_.servers[server];
  ShardReader reader(layout_, {server, options_.servers.size()}, options_.partition, vector);
  absl::Status taken;
  absl::Status status = calls.Pull(options_.sender.job_id(), deadline, [&](const v1::PullResponse& message) {
    taken = CheckGoing();
    if (taken.ok()) taken = reader.Take(message);
    return taken;
  });
  if (status.ok()) taken = reader.CheckComplete();
  return taken.ok() ? status : AtServer(calls.address(), taken);
}

}  // namespace hooke
