#pragma once

#include <utility>
#include <vector>

#include "executor/comm/notice.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// A connection for notices. Never waits: a notice of which the other end takes nothing is lost.
class ControlLine {
 public:
  ControlLine() = default;
  explicit ControlLine(FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Not once the other end is gone, or has sent what is no notice.
  bool is_open() const { return socket_.is_open(); }
  int number() const { return socket_.number(); }
  void say(const Notice& notice);
  /// The notices that have come.
  std::vector<Notice> hear();

 private:
  bool send_rest();

  FileDescriptor socket_;
  NoticeReader reader_;
  std::vector<std::byte> rest_;  // of a notice of which a part was sent
};

}  // namespace shardwise::exec
