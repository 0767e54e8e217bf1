#ifndef HOOKE_SERVER_SERVICE_DIAL_BACK_H_
#define HOOKE_SERVER_SERVICE_DIAL_BACK_H_

// Dials servers at the addresses that they advertise and asks who is there (ParameterServer.Identify).

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/cluster/server_dial.h"
#include "wire/cluster_token.h"

namespace hooke {

class DialBack {
 public:
  using Done = std::function<void(const DialAnswer& answer)>;

  // The destructor of an implementation ends all dials, as Stop does.
  virtual ~DialBack() = default;

  // Starts a dial and returns at once. `done` is called exactly once, from any thread. It must return soon, because
  // other dials may wait for it.
  virtual void Dial(const std::string& address, Done done) = 0;

  // Ends all dials, and returns when each `done` has returned. No Dial may run meanwhile or follow.
  virtual void Stop() = 0;
};

// Returns a DialBack whose calls carry `credential`. A dial that takes longer than `timeout` fails.
std::unique_ptr<DialBack> MakeGrpcDialBack(CallCredential credential = {}, absl::Duration timeout = absl::Seconds(10));

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_DIAL_BACK_H_
