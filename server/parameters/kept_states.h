#ifndef HOOKE_SERVER_PARAMETERS_KEPT_STATES_H_
#define HOOKE_SERVER_PARAMETERS_KEPT_STATES_H_

// The ranks' own states in storage, for later starts of their groups: one file for each state, beside the snapshots.
// docs/snapshot.md describes the format. This class does not interpret the bytes of a state.
//
// Thread-safe. No lock is held while a file is read or written.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/parameters/storage.h"

namespace spdlog {
class logger;
}

namespace hooke {

// Names a state of a rank. States of a later incarnation are newer, whatever their steps are.
struct KeptStateId {
  uint32_t incarnation = 0;
  uint64_t step = 0;

  friend bool operator==(const KeptStateId& a, const KeptStateId& b) {
    return a.incarnation == b.incarnation && a.step == b.step;
  }
  friend bool operator<(const KeptStateId& a, const KeptStateId& b) {
    return std::tie(a.incarnation, a.step) < std::tie(b.incarnation, b.step);
  }
};

struct KeptStateOwner {
  std::string job_id;
  uint32_t group = 0;
  uint32_t rank = 0;
};

// The bytes of a state, as its header announces them.
struct KeptStateSize {
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  // CRC-32 of the bytes, as zlib computes it.
};

class KeptStates {
  struct Job;

 public:
  struct Options {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<spdlog::logger> logger;
    // Limit for all states of a job here, including those that are being written.
    uint64_t job_bytes_max = uint64_t{16} << 30;
  };
  static constexpr uint64_t kStateBytesMax = uint64_t{1} << 40;

  // Finds the states in storage by their file names. Reads no file.
  static absl::StatusOr<std::unique_ptr<KeptStates>> Open(Options options);

  // A state that is being written. Without Commit it leaves nothing behind. Does not outlive the KeptStates.
  class Writer {
   public:
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    // Appends bytes to the state. DATA_LOSS: there are more bytes than announced. Other errors are those of the
    // storage.
    absl::Status Append(absl::string_view bytes);
    // Completes the state. Call it once, last. OK: the state is on disk. The owner's older states except `keeps` are
    // removed, or the log says why one stays. DATA_LOSS: the bytes are not those that were announced.
    // FAILED_PRECONDITION: the job's states were removed meanwhile. Other errors are those of the storage.
    absl::Status Commit(const KeptStateId& keeps);

   private:
    friend class KeptStates;
    Writer(KeptStates* states, KeptStateOwner owner, KeptStateId id, KeptStateSize size);

    KeptStates* const states_;
    const KeptStateOwner owner_;
    const KeptStateId id_;
    const KeptStateSize size_;
    const std::string name_;
    std::shared_ptr<Job> job_;
    std::unique_ptr<StorageWriter> file_;
    uint64_t appended_ = 0;
    uint32_t crc32_ = 0;
  };

  // Begins to write a state. INVALID_ARGUMENT: a number is out of range. RESOURCE_EXHAUSTED: the job's states would
  // take too much room, or the disk is full. UNAVAILABLE: the same state is being written, or the disk fails.
  absl::StatusOr<std::unique_ptr<Writer>> Begin(const KeptStateOwner& owner, const KeptStateId& id,
                                                const KeptStateSize& size);

  // Returns the owner's states, the newest first.
  std::vector<KeptStateId> List(const KeptStateOwner& owner) const;

  // Reads one state from front to back.
  class Reader {
   public:
    explicit Reader(std::unique_ptr<StorageReader> file) : file_(std::move(file)) {}

    const KeptStateSize& size() const { return size_; }
    // Returns the next bytes, at most `bytes`; "" at the end. DATA_LOSS: the file does not hold the bytes that were
    // written.
    absl::StatusOr<std::string> Read(uint64_t bytes);

   private:
    friend class KeptStates;
    absl::Status ReadHeader(const KeptStateId& id);

    std::unique_ptr<StorageReader> file_;
    KeptStateSize size_;
    uint64_t done_ = 0;
    uint32_t crc32_ = 0;
  };

  // Opens a state. NOT_FOUND: there is no such state. DATA_LOSS: its header is damaged.
  absl::StatusOr<std::unique_ptr<Reader>> Read(const KeptStateOwner& owner, const KeptStateId& id) const;

  // Removes all states of a job; writers that are at work fail. After an error call it again.
  absl::Status RemoveJob(absl::string_view job_id);

  // Removes the job's states of groups with this number and higher ones. A state that is just being written stays.
  absl::Status RemoveGroupsFrom(absl::string_view job_id, uint32_t group);

  std::vector<std::string> jobs() const;           // Jobs that have a state here, sorted.
  uint64_t bytes(absl::string_view job_id) const;  // Size of the job's states in storage.

 private:
  using Key = std::tuple<uint32_t, uint32_t, KeptStateId>;  // Group, rank and state.
  // KeptStates::mutex_ guards all fields.
  struct Job {
    std::map<Key, uint64_t> files;  // The lengths of the states in storage.
    uint64_t pending_bytes = 0;     // Bytes that running writers have announced.
    std::set<Key> pending;
    bool removed = false;
  };

  explicit KeptStates(Options options) : options_(std::move(options)) {}
  absl::Status CheckRoom(const std::string& job_id, const Job& job, uint64_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Prune(const KeptStateOwner& owner, const KeptStateId& newest, const KeptStateId& keeps, Job& job);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

// Returns a state's file name. For example, "fashion-1.0-3.0000000002.000000000000001500.state" is of job fashion-1,
// group 0, rank 3, incarnation 2 and step 1500.
std::string KeptStateName(const KeptStateOwner& owner, const KeptStateId& id);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_KEPT_STATES_H_
