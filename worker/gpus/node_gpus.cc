#include "worker/gpus/node_gpus.h"

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"

namespace hooke {
namespace {

// FNV-1a. Equal names have equal numbers in all workers of a machine, whatever their versions.
int64_t NumberOf(const GpuName& name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return static_cast<int64_t>(hash % ByteLocks::kNumbersMax);
}

}  // namespace

HeldGpus::~HeldGpus() { from_.GiveBack(chosen_); }

std::vector<std::vector<GpuName>> HeldGpus::gpus_of_rank() const {
  std::vector<std::vector<GpuName>> names;
  for (const std::vector<size_t>& of_rank : chosen_) {
    names.emplace_back();
    for (const size_t gpu : of_rank) names.back().push_back(from_.options_.gpus[gpu]);
  }
  return names;
}

NodeGpus::NodeGpus(NodeGpusOptions options) : options_(std::move(options)), own_users_(options_.gpus.size()) {
  if (options_.gpus.empty()) return;
  absl::StatusOr<std::unique_ptr<ByteLocks>> locks = ByteLocks::Open(options_.file);
  if (locks.ok()) {
    locks_ = *std::move(locks);
  } else {
    no_locks_ = locks.status();
  }
}

std::unique_ptr<HeldGpus> NodeGpus::Take(uint32_t ranks, uint32_t each) {
  if (options_.gpus.empty()) return nullptr;
  if (each == 0) each = GpusOfASlot(options_.gpus.size(), options_.slots);
  absl::MutexLock lock(&mutex_);
  const absl::Status begun = locks_ != nullptr ? locks_->BeginChoice() : no_locks_;
  const bool locked = begun.ok();
  std::vector<uint32_t> users = own_users_;
  for (size_t gpu = 0; gpu < users.size(); ++gpu) {
    if (locked && locks_->IsTaken(NumberOf(options_.gpus[gpu]))) ++users[gpu];
  }
  std::vector<std::vector<size_t>> chosen = ChooseGpus(users, each, ranks);
  bool shared = false;
  for (const std::vector<size_t>& of_rank : chosen) {
    for (const size_t gpu : of_rank) {
      shared |= users[gpu]++ > 0;
      ++own_users_[gpu];
      if (locked) locks_->Take(NumberOf(options_.gpus[gpu]));
    }
  }
  if (locked) locks_->EndChoice();
  auto held = std::make_unique<HeldGpus>(*this, std::move(chosen));
  held->shared_ = shared;
  if (!locked) held->others_unknown_ = std::string(begun.message());
  return held;
}

void NodeGpus::GiveBack(const std::vector<std::vector<size_t>>& chosen) {
  absl::MutexLock lock(&mutex_);
  for (const std::vector<size_t>& of_rank : chosen) {
    for (const size_t gpu : of_rank) {
      if (--own_users_[gpu] == 0 && locks_ != nullptr) locks_->GiveBack(NumberOf(options_.gpus[gpu]));
    }
  }
}

}  // namespace hooke
