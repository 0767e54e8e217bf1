#include "server/parameters/kept_states.h"

#include <spdlog/spdlog.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/base/config.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "wire/steps.h"

#ifndef ABSL_IS_LITTLE_ENDIAN
#error "Files of states hold little-endian numbers; this code copies them as they lie in memory."
#endif

namespace hooke {
namespace {

constexpr absl::string_view kMagic("hookest\n", 8);
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderBytes = 40;
constexpr absl::string_view kSuffix = "state";

uint32_t Checksum(uint32_t so_far, absl::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename T>
void Put(std::string* to, T number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string Header(const KeptStateId& id, const KeptStateSize& size) {
  std::string header(kMagic);
  Put(&header, kVersion);
  Put(&header, id.incarnation);
  Put(&header, id.step);
  Put(&header, size.bytes);
  Put(&header, size.crc32);
  Put(&header, Checksum(0, header));
  return header;
}

struct NamedState {
  KeptStateOwner owner;
  KeptStateId id;
};

// Reads a file's name that KeptStateName has written. nullopt: the file is no state.
std::optional<NamedState> ParseName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  if (parts.size() != 5 || parts[4] != kSuffix) return std::nullopt;
  const std::vector<absl::string_view> place = absl::StrSplit(parts[1], '-');
  NamedState state;
  state.owner.job_id = std::string(parts[0]);
  const bool good = place.size() == 2 && absl::SimpleAtoi(place[0], &state.owner.group) &&
                    absl::SimpleAtoi(place[1], &state.owner.rank) &&
                    absl::SimpleAtoi(parts[2], &state.id.incarnation) && absl::SimpleAtoi(parts[3], &state.id.step);
  if (!good || KeptStateName(state.owner, state.id) != name) return std::nullopt;
  return state;
}

std::string Whose(const KeptStateOwner& owner, const KeptStateId& id) {
  return absl::StrCat("the state of group ", owner.group, " rank ", owner.rank, " of job ", owner.job_id, " at step ",
                      id.step, ", start ", id.incarnation);
}

}  // namespace

std::string KeptStateName(const KeptStateOwner& owner, const KeptStateId& id) {
  return absl::StrCat(owner.job_id, ".", owner.group, "-", owner.rank, ".",
                      absl::StrFormat("%010d.%018d.", id.incarnation, id.step), kSuffix);
}

absl::StatusOr<std::unique_ptr<KeptStates>> KeptStates::Open(Options options) {
  absl::StatusOr<std::vector<std::string>> names = options.storage->List();
  if (!names.ok()) return names.status();
  std::unique_ptr<KeptStates> states(new KeptStates(std::move(options)));
  for (const std::string& name : *names) {
    const std::optional<NamedState> state = ParseName(name);
    if (!state.has_value()) continue;
    const absl::StatusOr<std::unique_ptr<StorageReader>> file = states->options_.storage->Open(name);
    absl::MutexLock lock(&states->mutex_);
    std::shared_ptr<Job>& job = states->jobs_[state->owner.job_id];
    if (job == nullptr) job = std::make_shared<Job>();
    job->files[{state->owner.group, state->owner.rank, state->id}] = file.ok() ? (*file)->size() : 0;
  }
  return states;
}

absl::Status KeptStates::CheckRoom(const std::string& job_id, const Job& job, uint64_t bytes) const {
  uint64_t taken = job.pending_bytes;
  for (const auto& [key, file_bytes] : job.files) taken += file_bytes;
  const uint64_t free = options_.job_bytes_max - std::min(options_.job_bytes_max, taken);
  if (bytes <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a state of ", bytes, " bytes has no room: the states of job ", job_id, " take ", taken, " of the ",
      options_.job_bytes_max, " bytes that this server gives a job; keep less, or give the job more servers"));
}

absl::StatusOr<std::unique_ptr<KeptStates::Writer>> KeptStates::Begin(const KeptStateOwner& owner,
                                                                      const KeptStateId& id,
                                                                      const KeptStateSize& size) {
  if (size.bytes > kStateBytesMax || id.step > kStepMax || id.incarnation == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a state of ", size.bytes, " bytes at step ", id.step, ", start ",
                                                   id.incarnation, "; allowed are at most ", kStateBytesMax,
                                                   " bytes, a step of at most ", kStepMax, ", and a start from 1 on"));
  }
  std::unique_ptr<Writer> writer(new Writer(this, owner, id, size));
  {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Job>& job = jobs_[owner.job_id];
    if (job == nullptr) job = std::make_shared<Job>();
    if (absl::Status status = CheckRoom(owner.job_id, *job, kHeaderBytes + size.bytes); !status.ok()) return status;
    if (!job->pending.insert({owner.group, owner.rank, id}).second) {
      return absl::UnavailableError(absl::StrCat(Whose(owner, id), " is being written already; try again"));
    }
    job->pending_bytes += kHeaderBytes + size.bytes;
    writer->job_ = job;
  }
  absl::StatusOr<std::unique_ptr<StorageWriter>> file = options_.storage->Create(writer->name_);
  if (!file.ok()) return file.status();
  writer->file_ = *std::move(file);
  if (absl::Status status = writer->file_->Append(Header(id, size)); !status.ok()) return status;
  return writer;
}

KeptStates::Writer::Writer(KeptStates* states, KeptStateOwner owner, KeptStateId id, KeptStateSize size)
    : states_(states), owner_(std::move(owner)), id_(id), size_(size), name_(KeptStateName(owner_, id_)) {}

KeptStates::Writer::~Writer() {
  file_.reset();
  if (job_ == nullptr) return;
  absl::MutexLock lock(&states_->mutex_);
  job_->pending_bytes -= kHeaderBytes + size_.bytes;
  job_->pending.erase({owner_.group, owner_.rank, id_});
}

absl::Status KeptStates::Writer::Append(absl::string_view bytes) {
  if (bytes.size() > size_.bytes - appended_) {
    return absl::DataLossError(
        absl::StrCat(Whose(owner_, id_), " has more than the announced ", size_.bytes, " bytes"));
  }
  crc32_ = Checksum(crc32_, bytes);
  appended_ += bytes.size();
  return file_->Append(bytes);
}

absl::Status KeptStates::Writer::Commit(const KeptStateId& keeps) {
  if (appended_ != size_.bytes || crc32_ != size_.crc32) {
    return absl::DataLossError(absl::StrCat(Whose(owner_, id_), " came as ", appended_, " bytes with CRC-32 ", crc32_,
                                            "; announced were ", size_.bytes, " bytes with ", size_.crc32));
  }
  if (absl::Status status = file_->Commit(); !status.ok()) return status;
  bool removed = false;
  {
    absl::MutexLock lock(&states_->mutex_);
    removed = job_->removed;
    if (!removed) job_->files[{owner_.group, owner_.rank, id_}] = kHeaderBytes + size_.bytes;
  }
  if (!removed) {
    states_->Prune(owner_, id_, keeps, *job_);
    return absl::OkStatus();
  }
  if (absl::Status status = states_->options_.storage->Remove(name_); !status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat("job ", owner_.job_id, " has ended"));
}

// Removes the owner's states that are older than `newest`, except `keeps`. Newer states belong to a later start, which
// has kept its state already. A state that cannot be removed stays counted, and the next Prune tries again.
void KeptStates::Prune(const KeptStateOwner& owner, const KeptStateId& newest, const KeptStateId& keeps, Job& job) {
  std::vector<KeptStateId> old = List(owner);
  old.erase(
      std::remove_if(old.begin(), old.end(), [&](const KeptStateId& id) { return !(id < newest) || id == keeps; }),
      old.end());
  for (const KeptStateId& id : old) {
    if (absl::Status status = options_.storage->Remove(KeptStateName(owner, id)); !status.ok()) {
      options_.logger->warn("an old state stays: {}", std::string(status.message()));
      continue;
    }
    absl::MutexLock lock(&mutex_);
    job.files.erase({owner.group, owner.rank, id});
  }
}

std::vector<KeptStateId> KeptStates::List(const KeptStateOwner& owner) const {
  absl::MutexLock lock(&mutex_);
  std::vector<KeptStateId> ids;
  const auto job = jobs_.find(owner.job_id);
  if (job == jobs_.end()) return ids;
  for (const auto& [key, bytes] : job->second->files) {
    if (std::get<0>(key) == owner.group && std::get<1>(key) == owner.rank) ids.push_back(std::get<2>(key));
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

absl::StatusOr<std::unique_ptr<KeptStates::Reader>> KeptStates::Read(const KeptStateOwner& owner,
                                                                     const KeptStateId& id) const {
  absl::StatusOr<std::unique_ptr<StorageReader>> file = options_.storage->Open(KeptStateName(owner, id));
  if (absl::IsNotFound(file.status())) return absl::NotFoundError(absl::StrCat(Whose(owner, id), " is not here"));
  if (!file.ok()) return file.status();
  auto reader = std::make_unique<Reader>(*std::move(file));
  absl::Status status = reader->ReadHeader(id);
  if (absl::IsDataLoss(status)) status = absl::DataLossError(absl::StrCat(Whose(owner, id), ": ", status.message()));
  if (!status.ok()) return status;
  return reader;
}

absl::Status KeptStates::Reader::ReadHeader(const KeptStateId& id) {
  absl::StatusOr<std::string> header = file_->Read(kHeaderBytes);
  if (!header.ok()) return header.status();
  if (header->size() != kHeaderBytes) return absl::DataLossError("its file ends within the header");
  constexpr size_t kSizeAt = 24;
  std::memcpy(&size_.bytes, header->data() + kSizeAt, sizeof(size_.bytes));
  std::memcpy(&size_.crc32, header->data() + kSizeAt + sizeof(size_.bytes), sizeof(size_.crc32));
  if (*header != Header(id, size_)) return absl::DataLossError("its header is damaged, or of another version of Hooke");
  if (file_->size() == kHeaderBytes + size_.bytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its file has ", file_->size(), " bytes instead of ", kHeaderBytes + size_.bytes));
}

absl::StatusOr<std::string> KeptStates::Reader::Read(uint64_t bytes) {
  absl::StatusOr<std::string> read = file_->Read(std::min(bytes, size_.bytes - done_));
  if (!read.ok()) return read;
  done_ += read->size();
  crc32_ = Checksum(crc32_, *read);
  const bool ends = read->empty() || done_ == size_.bytes;
  if (ends && (done_ != size_.bytes || crc32_ != size_.crc32)) {
    return absl::DataLossError(absl::StrCat("the first ", done_, " bytes of a state are not those that were written"));
  }
  return read;
}

absl::Status KeptStates::RemoveJob(absl::string_view job_id) {
  std::vector<std::string> names;
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end()) return absl::OkStatus();
    job = found->second;
    job->removed = true;
    for (const auto& [key, bytes] : job->files) {
      names.push_back(KeptStateName({found->first, std::get<0>(key), std::get<1>(key)}, std::get<2>(key)));
    }
  }
  for (const std::string& name : names) {
    if (absl::Status status = options_.storage->Remove(name); !status.ok()) return status;
  }
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job_id);
  if (found != jobs_.end() && found->second == job) jobs_.erase(found);
  return absl::OkStatus();
}

absl::Status KeptStates::RemoveGroupsFrom(absl::string_view job_id, uint32_t group) {
  std::vector<Key> keys;
  std::shared_ptr<Job> job;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end()) return absl::OkStatus();
    job = found->second;
    for (auto file = job->files.lower_bound({group, 0, {}}); file != job->files.end(); ++file) {
      keys.push_back(file->first);
    }
  }
  for (const Key& key : keys) {
    const auto& [of_group, rank, id] = key;
    const std::string name = KeptStateName({std::string(job_id), of_group, rank}, id);
    if (absl::Status status = options_.storage->Remove(name); !status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    job->files.erase(key);
  }
  return absl::OkStatus();
}

std::vector<std::string> KeptStates::jobs() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [job_id, job] : jobs_) {
    if (!job->files.empty()) ids.push_back(job_id);
  }
  return ids;
}

uint64_t KeptStates::bytes(absl::string_view job_id) const {
  absl::MutexLock lock(&mutex_);
  const auto job = jobs_.find(job_id);
  uint64_t sum = 0;
  if (job == jobs_.end()) return sum;
  for (const auto& [key, bytes] : job->second->files) sum += bytes;
  return sum;
}

}  // namespace hooke
