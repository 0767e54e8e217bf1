#ifndef HOOKE_SERVER_SERVICE_FAKE_DIAL_BACK_H_
#define HOOKE_SERVER_SERVICE_FAKE_DIAL_BACK_H_

// For tests: dials without sockets.

#include <string>

#include "server/coordinator/fake_server.h"
#include "server/service/dial_back.h"

namespace hooke {

// Finds a FakeServer at each address.
class FakeDialBack : public DialBack {
 public:
  void Dial(const std::string& address, Done done) override { done(FakeServerAnswers(address)); }
  void Stop() override {}
};

}  // namespace hooke

#endif  // HOOKE_SERVER_SERVICE_FAKE_DIAL_BACK_H_
