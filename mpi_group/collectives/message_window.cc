#include "mpi_group/collectives/message_window.h"

#include <algorithm>

namespace hooke {

SendWindow::SendWindow(Transport& transport, const Call& call, int messages)
    : transport_(transport), call_(call), tickets_(std::max(1, messages)) {
  if (call_.scratch.outgoing.size() < tickets_.size()) call_.scratch.outgoing.resize(tickets_.size());
}

absl::Status SendWindow::Start(int to, const TensorList& chunk) {
  const uint64_t fit = tickets_.size();
  if (started_ >= fit) {
    absl::Status status = WaitForFirst(started_ - fit + 1);
    if (!status.ok()) return status;
  }
  // The message that used this index before is done, so its buffer is free.
  const uint64_t place = started_++ % fit;
  const absl::StatusOr<Transport::Ticket> ticket =
      transport_.StartSend({to, ContiguousValues(chunk, call_.scratch.outgoing[place])});
  if (!ticket.ok()) return ticket.status();
  tickets_[place] = *ticket;
  return absl::OkStatus();
}

absl::Status SendWindow::WaitForFirst(uint64_t count) {
  for (; done_ < count; ++done_) {
    absl::Status status = transport_.Wait(tickets_[done_ % tickets_.size()], call_.deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

ReceiveWindow::ReceiveWindow(Transport& transport, const Call& call, int messages)
    : transport_(transport), call_(call), messages_(std::max(1, messages)) {
  if (call_.scratch.incoming.size() < messages_.size()) call_.scratch.incoming.resize(messages_.size());
}

absl::Status ReceiveWindow::StartInto(int from, const TensorList& chunk) {
  return Start(from, ContiguousRoom(chunk, Buffer()), chunk.pieces().size() > 1 ? chunk : TensorList());
}

absl::Status ReceiveWindow::StartBeside(int from, const TensorList& chunk) {
  std::vector<char>& buffer = Buffer();
  if (buffer.size() < chunk.bytes()) buffer.resize(chunk.bytes());
  return Start(from, absl::MakeSpan(buffer).first(chunk.bytes()), TensorList());
}

absl::Status ReceiveWindow::Start(int from, absl::Span<char> bytes, const TensorList& scatter_to) {
  const absl::StatusOr<Transport::Ticket> ticket = transport_.StartReceive({from, bytes});
  if (!ticket.ok()) return ticket.status();
  messages_[started_++ % messages_.size()] = {*ticket, bytes, scatter_to};
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const char>> ReceiveWindow::Next() {
  const Message& message = messages_[done_ % messages_.size()];
  absl::Status status = transport_.Wait(message.ticket, call_.deadline);
  if (!status.ok()) return status;
  ++done_;
  if (!message.scatter_to.empty()) Scatter(message.bytes, message.scatter_to);
  return absl::Span<const char>(message.bytes);
}

}  // namespace hooke
