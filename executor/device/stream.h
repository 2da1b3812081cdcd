#pragma once

namespace shardwise::exec {

/// A queue of a device: what is issued to it runs in that order, beside other queues. Kernels and
/// collectives are told theirs and return when they are issued. On the CPU the calling thread is
/// the queue: what returns is done.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  DeviceStream() = default;
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
};

}  // namespace shardwise::exec
