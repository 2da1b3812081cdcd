#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/awake_clock.h"
#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

// Non-blocking sockets between processes. A call that waits does so in poll(2), until a deadline.

/// On the clock of waits, which stands still while this process is stopped.
using Deadline = AwakeClock::time_point;
/// Deadline from now on.
Deadline in_seconds(double seconds);
/// Patience for poll(2): the rest of it, from 0 to 100 ms, so that a wait can be ended.
int left_ms(Deadline until);

/// Listens for TCP on one address of this host, in numbers. \param port  0: any that is free.
/// \returns nothing when the port is taken, or the address is not this host's
std::optional<FileDescriptor> listen_tcp(const std::string& address, int port);
/// The port that a socket listens on.
int port_of(const FileDescriptor& listening);
/// Listens for processes of this host, under a name that is no file's. Source: unix(7), abstract.
std::optional<FileDescriptor> listen_local(const std::string& name);

/// Why a name stands for no address; empty where it does.
std::string unresolved(const std::string& host);
/// The addresses that a name stands for, in numbers and in the order of the system.
std::vector<std::string> addresses_of(const std::string& host);
/// Whether this host has the address, and whether it can only be this host's.
bool is_own_address(const std::string& address);
bool is_loopback(const std::string& address);
/// Connects, or returns nothing when nothing listens before the deadline.
std::optional<FileDescriptor> connect_tcp(const std::string& host, int port, Deadline until);
std::optional<FileDescriptor> connect_local(const std::string& name);
/// Who has connected to a socket that listens, or nothing when nobody has.
std::optional<FileDescriptor> accept_now(const FileDescriptor& listening);

/// The process at the other end of a local socket, as the kernel knows it: no process can name
/// another in its place. Closed for TCP, for a process of another user, and where it is gone.
/// Source: unix(7), SO_PEERCRED; pidfd_open(2).
FileDescriptor process_at(const FileDescriptor& line);
/// Kills a process of process_at(), which may be stopped.
void end_process(const FileDescriptor& process);
/// Kills the process at the other end of a local socket, if it is another one and has not closed
/// its end by then.
void end_unless_closed(const FileDescriptor& line, Deadline until);

/// The process at the other end of a local socket and its user, as the kernel names them. Of one
/// that listened: when it began to. Process 0 where there is none. Source: unix(7), SO_PEERCRED.
struct Peer {
  std::int32_t process = 0;
  std::uint32_t user = 0;
};
Peer peer_of(const FileDescriptor& line);
/// Whether that process is this user's.
bool is_of_this_user(const FileDescriptor& line);
/// The addresses of the two ends of a TCP connection, in numbers.
std::string local_address(const FileDescriptor& line);
std::string other_address(const FileDescriptor& line);

/// \returns whether all went, or came, by then; not where the other end is gone
bool send_all(const FileDescriptor& to, std::span<const std::byte> bytes, Deadline until);
bool receive_all(const FileDescriptor& from, std::span<std::byte> bytes, Deadline until);

/// The addresses of this host on networks, IPv4 first.
std::vector<std::string> own_addresses();

}  // namespace shardwise::exec
