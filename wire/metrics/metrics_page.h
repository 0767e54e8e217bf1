#ifndef HOOKE_WIRE_METRICS_METRICS_PAGE_H_
#define HOOKE_WIRE_METRICS_METRICS_PAGE_H_

// The page /metrics of a daemon: what its flag --metrics starts.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "wire/cluster_token.h"
#include "wire/http/http_server.h"
#include "wire/metrics/families.h"

namespace hooke {

// Serves /metrics at `address`, with the families that `collect` adds. Several threads may call `collect` at once. If
// other machines can reach the address, a request must have the token, unless it is empty. INVALID_ARGUMENT: `address`
// is malformed. UNAVAILABLE: it cannot listen there.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeMetrics(const std::string& address, const ClusterToken& token,
                                                         std::function<void(MetricFamilies&)> collect);

}  // namespace hooke

#endif  // HOOKE_WIRE_METRICS_METRICS_PAGE_H_
