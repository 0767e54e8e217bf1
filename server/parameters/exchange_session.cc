#include "server/parameters/exchange_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Messages hold little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

Speaker ToSpeaker(const v1::Sender& sender) { return {sender.group(), sender.rank(), sender.incarnation()}; }

}  // namespace

absl::StatusOr<bool> ExchangeSession::Receive(const v1::ExchangeRequest& request, v1::ExchangeResponse* response) {
  if (request.has_header()) {
    if (absl::Status status = CheckJobId(request.header().sender().job_id()); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<Shard>> shard = store_->Find(request.header().sender().job_id());
    if (!shard.ok()) return shard.status();
    shard_ = *std::move(shard);
    exchange_.speaker = ToSpeaker(request.header().sender());
    exchange_.sequence = request.header().sequence();
    return false;
  }
  if (!request.has_block())
    return absl::InvalidArgumentError("Exchange: a message has neither a header nor a block; it has one of them");
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Exchange: a block came before any header; the first message is a header");
  if (absl::Status status = DecodeValues(request.block(), &values_); !status.ok()) return status;
  answer_.resize(values_.size());
  exchange_.first = request.block().first();
  if (absl::Status status = shard_->ApplyBlock(exchange_, values_, absl::MakeSpan(answer_)); !status.ok())
    return status;
  EncodeBlock(exchange_.first, answer_, response->mutable_block());
  return true;
}

absl::StatusOr<bool> InitializeSession::Receive(absl::Time now, const v1::InitializeRequest& request) {
  if (request.has_header()) {
    if (shard_ != nullptr) return absl::InvalidArgumentError("Initialize: a second header; one is allowed, first");
    if (absl::Status status = CheckJobId(request.header().sender().job_id()); !status.ok()) return status;
    absl::StatusOr<std::shared_ptr<Shard>> shard = store_->Find(request.header().sender().job_id());
    if (!shard.ok()) return shard.status();
    shard_ = *std::move(shard);
    job_id_ = request.header().sender().job_id();
    speaker_ = ToSpeaker(request.header().sender());
    written_.assign(shard_->blocks(), false);
    return !shard_->initialized();
  }
  if (!request.has_block())
    return absl::InvalidArgumentError("Initialize: a message has neither a header nor a block; it has one of them");
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Initialize: a block came before the header; the first message is a header");
  const v1::Block& block = request.block();
  if (absl::Status status = DecodeValues(block, &values_); !status.ok()) return status;
  absl::StatusOr<uint64_t> index = shard_->FindBlock(block.first(), values_.size());
  if (!index.ok()) return index.status();
  if (written_[*index]) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: the block at value ", block.first(), " came twice; once is allowed"));
  }
  written_[*index] = true;
  if (absl::Status status = shard_->WriteInitial(now, speaker_, block.first(), values_); !status.ok()) return status;
  return true;
}

absl::Status InitializeSession::Finish() {
  if (shard_ == nullptr)
    return absl::InvalidArgumentError("Initialize: the stream ended before the header; the first message is a header");
  const auto missing = std::find(written_.begin(), written_.end(), false);
  if (missing != written_.end() && !shard_->initialized()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Initialize: ", std::count(written_.begin(), written_.end(), false), " of ", written_.size(),
        " blocks are missing, first the one at value ", shard_->BlockRange(missing - written_.begin()).begin));
  }
  return store_->FinishInitialize(job_id_, speaker_);
}

absl::Status DecodeValues(const v1::Block& block, std::vector<float>* values) {
  const std::string& bytes = block.values();
  if (bytes.size() % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("block.values at value ", block.first(), " has ", bytes.size(),
                                                   " bytes; a multiple of 4 is allowed"));
  }
  values->resize(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values->data(), bytes.data(), bytes.size());
  return absl::OkStatus();
}

void EncodeBlock(uint64_t first, absl::Span<const float> values, v1::Block* block) {
  block->set_first(first);
  block->set_values(values.data(), values.size() * sizeof(float));
}

}  // namespace hooke
