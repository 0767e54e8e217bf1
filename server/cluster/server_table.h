#ifndef HOOKE_SERVER_CLUSTER_SERVER_TABLE_H_
#define HOOKE_SERVER_CLUSTER_SERVER_TABLE_H_

// The servers that the coordinator knows: which process speaks for which, which one is at an address, and what each
// has on its disk.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "clocks/instant.h"
#include "proto/coordinator.pb.h"
#include "server/cluster/choose_servers.h"
#include "server/cluster/cluster_figures.h"
#include "server/cluster/effects.h"
#include "server/cluster/known.h"
#include "server/cluster/liveness.h"
#include "server/cluster/server_dial.h"
#include "server/records/records.h"

namespace hooke {

class ServerTable {
 public:
  // The keys are those of KeyOf(JobServer). If a server has sent a heartbeat, its key is its identity.
  using Servers = std::map<std::string, known::Server>;

  explicit ServerTable(LivenessOptions liveness) : liveness_(liveness) {}

  // Names the server in the coordinator's process.
  void SetOwn(const std::string& server_id) { own_ = server_id; }
  // Adds the server of a stored job, which nobody has heard yet.
  void AddUnheard(const JobServer& shard, Instant now);
  // Returns the server of this key, which is added if there is none. It stays at its address until it is erased.
  known::Server& Add(const std::string& key) { return servers_[key]; }
  void Erase(const std::string& key) { servers_.erase(key); }
  // Erases servers and refused processes that were not heard for an hour. `is_in_use` says whether an unfinished job
  // uses a server; such servers stay.
  void EraseOld(absl::FunctionRef<bool(const std::string& key)> is_in_use, Instant now);

  Servers::iterator begin() { return servers_.begin(); }
  Servers::iterator end() { return servers_.end(); }
  Servers::const_iterator begin() const { return servers_.begin(); }
  Servers::const_iterator end() const { return servers_.end(); }
  size_t size() const { return servers_.size(); }

  // Returns null if there is no such server.
  known::Server* Find(const std::string& key);
  const known::Server* Find(const std::string& key) const;
  bool IsAlive(const known::Server& server, Instant now) const;

  // Returns why the process of this claim may not speak for its server, and remembers the process. Empty: it may.
  std::string Refuse(const ServerClaim& claim, absl::string_view version, Instant now, Effects& effects);
  // Takes a claim that was not refused. A server with a new process or a new address has to be dialed again.
  static void TakeClaim(known::Server& server, const ServerClaim& claim, Instant now);
  // Asks for a dial of the server, unless one is under way, it is too soon, or the server is silent.
  void DialIfDue(known::Server& server, Instant now, Effects& effects);
  // Returns the identity of another live server at the claim's address; "": there is none.
  std::string LiveServerAt(const ServerClaim& claim, Instant now) const;

  // Notes which servers are lost by now. Returns the addresses of those that were not, at the last call.
  std::set<std::string> TakeLost(Instant now);
  // Chooses the servers that would hold a center if its first group started now. 0 `servers`: as many as there are.
  ServerChoice Choose(uint32_t servers, Instant now) const;
  // Returns the bytes of each job's shards on disk, by job id. For a silent server its last list counts.
  std::map<std::string, uint64_t> DiskBytes() const;

  // The servers for users, those with the same address beside each other. Refused processes are among them.
  std::vector<v1::NodeStatus> Statuses(Instant now) const;
  // The servers that were heard, by address.
  std::vector<ServerFigures> Figures(Instant now) const;

 private:
  LivenessOptions liveness_;
  std::string own_;
  Servers servers_;
  std::map<std::string, known::RefusedServer> refused_;  // By instance.
  uint64_t next_dial_ = 1;
};

// Returns whether one of the job's shards is on the server with this key.
bool HasShardOn(const JobRecord& job, const std::string& key);

}  // namespace hooke

#endif  // HOOKE_SERVER_CLUSTER_SERVER_TABLE_H_
