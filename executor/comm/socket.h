#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/storage/file_descriptor.h"

namespace shardwise::exec {

// Sockets between processes, none of which blocks: whoever waits does so in poll(2), until a time.

using Deadline = std::chrono::steady_clock::time_point;
/// From now on.
Deadline in_seconds(double seconds);
/// For poll(2): what is left of it, at least 0 and at most 100 ms, so that a wait can be ended.
int left_ms(Deadline until);

/// Listens for TCP on all addresses of this host, or on its own only, IPv6 where it has that.
/// \param port  0: any that is free. \returns nothing when it is taken
std::optional<FileDescriptor> listen_tcp(int port, bool this_host_only);
/// The port that a socket listens on.
int port_of(const FileDescriptor& listening);
/// Listens for processes of this host, under a name that is no file's. Source: unix(7), abstract.
std::optional<FileDescriptor> listen_local(const std::string& name);

/// Why a name stands for no address; empty where it does.
std::string unresolved(const std::string& host);
/// A connection to who listens there, or nothing when nobody does by then.
std::optional<FileDescriptor> connect_tcp(const std::string& host, int port, Deadline until);
std::optional<FileDescriptor> connect_local(const std::string& name);
/// Who has connected to a socket that listens, or nothing when nobody has.
std::optional<FileDescriptor> accept_now(const FileDescriptor& listening);

/// The process at the other end of a local socket, as the kernel knows it: no process can name
/// another in its place. Closed for TCP, for a process of another user, and where it is gone.
/// Source: unix(7), SO_PEERCRED; pidfd_open(2).
FileDescriptor process_at(const FileDescriptor& line);

/// \returns whether all went, or came, by then; not where the other end is gone
bool send_all(const FileDescriptor& to, std::span<const std::byte> bytes, Deadline until);
bool receive_all(const FileDescriptor& from, std::span<std::byte> bytes, Deadline until);

/// The addresses of this host on networks, IPv4 first.
std::vector<std::string> own_addresses();

}  // namespace shardwise::exec
