#include "wire/stream_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hooke {
namespace {

void SetOption(int descriptor, int level, int name, int value) {
  setsockopt(descriptor, level, name, &value, sizeof value);
}

}  // namespace

void SetStreamOptions(int descriptor) {
  // Each message is sent as a whole, so waiting for more data would only delay it.
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  // Gives up a silent peer after about 20 s: 10 s idle and two probes 5 s apart, or 20 s without an acknowledgement.
  SetOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 2);
  SetOption(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
}

}  // namespace hooke
