#include "server/parameters/state_session.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/parameters/attach.h"
#include "server/parameters/shard_plan.h"

namespace hooke {
namespace {

constexpr uint64_t kChunkBytes = 256 << 10;
constexpr uint64_t kChunkBytesMax = 2 << 20;

KeptStateOwner OwnerOf(const v1::Sender& sender) { return {sender.job_id(), sender.group(), sender.rank()}; }

KeptStateId IdOf(const v1::StateId& id) { return {id.incarnation(), id.step()}; }

absl::Status CheckSender(ParameterStore& store, const v1::Sender& sender) {
  if (absl::Status status = CheckJobId(sender.job_id()); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<Shard>> shard = store.Find(sender);
  if (!shard.ok()) return shard.status();
  return (*shard)->CheckSpeaker({sender.group(), sender.rank(), sender.incarnation()});
}

}  // namespace

absl::Status KeepStateSession::Receive(const v1::KeepStateRequest& message) {
  if (message.has_header()) return Open(message.header());
  if (writer_ == nullptr) return absl::InvalidArgumentError("KeepState: the first message is a header");
  if (message.chunk().size() > kChunkBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("KeepState: a chunk has ", message.chunk().size(),
                                                   " bytes; at most ", kChunkBytesMax, " are allowed"));
  }
  return writer_->Append(message.chunk());
}

absl::Status KeepStateSession::Open(const v1::KeepStateRequest::Header& header) {
  if (writer_ != nullptr) return absl::InvalidArgumentError("KeepState: a second header; one is allowed, first");
  if (absl::Status status = CheckSender(*store_, header.sender()); !status.ok()) return status;
  sender_ = header.sender();
  keeps_ = IdOf(header.keeps());
  absl::StatusOr<std::unique_ptr<KeptStates::Writer>> writer = store_->states().Begin(
      OwnerOf(sender_), {sender_.incarnation(), header.step()}, {header.bytes(), header.crc32()});
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  return absl::OkStatus();
}

absl::Status KeepStateSession::Finish() {
  if (writer_ == nullptr) return absl::InvalidArgumentError("KeepState: the stream ended before the header");
  if (absl::Status status = CheckSender(*store_, sender_); !status.ok()) return status;
  if (absl::Status status = writer_->Commit(keeps_); !status.ok()) return status;
  writer_.reset();
  // The job may have ended meanwhile. If its states were removed before this one was committed, this one is still
  // there.
  absl::Status after = store_->Find(sender_).status();
  if (!absl::IsFailedPrecondition(after)) return absl::OkStatus();
  store_->states().RemoveJob(sender_.job_id()).IgnoreError();
  return after;
}

absl::Status FetchState(ParameterStore& store, const v1::FetchStateRequest& request,
                        absl::FunctionRef<absl::Status(const v1::FetchStateResponse&)> send) {
  if (absl::Status status = CheckSender(store, request.sender()); !status.ok()) return status;
  const KeptStateOwner owner = OwnerOf(request.sender());
  v1::FetchStateResponse response;
  for (const KeptStateId& id : store.states().List(owner)) {
    v1::StateId* state = response.mutable_header()->add_states();
    state->set_incarnation(id.incarnation);
    state->set_step(id.step);
  }
  if (!request.has_state()) {
    response.mutable_header();
    return send(response);
  }
  absl::StatusOr<std::unique_ptr<KeptStates::Reader>> reader = store.states().Read(owner, IdOf(request.state()));
  if (!reader.ok()) return reader.status();
  response.mutable_header()->set_bytes((*reader)->size().bytes);
  response.mutable_header()->set_crc32((*reader)->size().crc32);
  if (absl::Status status = send(response); !status.ok()) return status;
  while (true) {
    absl::StatusOr<std::string> bytes = (*reader)->Read(kChunkBytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return absl::OkStatus();
    response.set_chunk(*std::move(bytes));
    if (absl::Status status = send(response); !status.ok()) return status;
  }
}

}  // namespace hooke
