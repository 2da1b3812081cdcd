#pragma once

#include <utility>
#include <vector>

#include "executor/comm/notice.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

/// A connection for notices. Never waits: what the other end does not take is lost.
class ControlLine {
 public:
  ControlLine() = default;
  explicit ControlLine(FileDescriptor socket) : socket_(std::move(socket)) {}

  /// Not once the other end is gone, or has sent what is no notice.
  bool is_open() const { return socket_.is_open(); }
  int number() const { return socket_.number(); }
  void say(const Notice& notice) const;
  /// The notices that have come.
  std::vector<Notice> hear();

 private:
  FileDescriptor socket_;
  NoticeReader reader_;
};

}  // namespace shardwise::exec
