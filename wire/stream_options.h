#ifndef HOOKE_WIRE_STREAM_OPTIONS_H_
#define HOOKE_WIRE_STREAM_OPTIONS_H_

namespace hooke {

// Sets the options of a connected socket that carries messages. TCP sends each message at once, and gives a silent peer
// up after about 20 s. A Unix socket does not have these options, so failures are ignored.
void SetStreamOptions(int descriptor);

}  // namespace hooke

#endif  // HOOKE_WIRE_STREAM_OPTIONS_H_
