#include "wire/metrics/metrics_page.h"

#include <utility>

#include "wire/host_port.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<HttpServer>> ServeMetrics(const std::string& address, const ClusterToken& token,
                                                         std::function<void(MetricFamilies&)> collect) {
  absl::StatusOr<HostPort> listen = ParseHostPort(address);
  if (!listen.ok()) return listen.status();
  HttpServerOptions options;
  options.flag = "--metrics";
  if (!listen->IsLoopback()) options.token = token;
  options.listen = *std::move(listen);
  options.pages["/metrics"] = [collect = std::move(collect)](const HttpRequest& /*request*/) {
    MetricFamilies families;
    collect(families);
    return HttpAnswer{families.Text(), "text/plain; version=0.0.4; charset=utf-8"};
  };
  return HttpServer::Start(std::move(options));
}

}  // namespace hooke
