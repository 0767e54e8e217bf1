#ifndef HOOKE_WORKER_EXCHANGE_RESTARTABLE_SERVER_TEST_H_
#define HOOKE_WORKER_EXCHANGE_RESTARTABLE_SERVER_TEST_H_

// A real parameter server with gRPC on loopback, for tests of clients. It can be stopped and started again on its port,
// with or without its disk.

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/parameter_server.h"
#include "server/parameters/storage.h"
#include "server/parameters/test_server.h"

namespace hooke {

class RestartableServer {
 public:
  // Starts the server. `direct_host` is ParameterServerOptions.direct_host.
  explicit RestartableServer(std::string direct_host = "") : direct_host_(std::move(direct_host)) { Start(); }

  const std::string& address() const { return address_; }

  void Start() {
    ParameterServerOptions options = TestServerOptions(storage_);
    options.direct_host = direct_host_;
    server_ = std::make_unique<TestServer>(options, address_);
    address_ = server_->address();
  }
  // Stops the server. A second call does nothing.
  void Stop() { server_.reset(); }
  // Empties the server's disk. Call it while the server is stopped.
  void LoseDisk() { storage_ = std::make_shared<InMemoryStorage>(); }
  // Seals the job: its center can still be read, but no longer changed. Call it while the server runs.
  void Seal(const std::string& job) { EXPECT_TRUE(server_->parameters().Seal(job).ok()); }

 private:
  const std::string direct_host_;
  std::shared_ptr<Storage> storage_ = std::make_shared<InMemoryStorage>();
  std::string address_ = "127.0.0.1:0";
  std::unique_ptr<TestServer> server_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_RESTARTABLE_SERVER_TEST_H_
