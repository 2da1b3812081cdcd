#pragma once

#include <functional>
#include <string_view>

namespace shardwise {

/// The exit code of an environment failure, of all programs.
inline constexpr int kEnvironmentFailure = 3;

/// The main of a program: what `body` returns, or kEnvironmentFailure with one line on standard
/// error after an exception, and when standard output or standard error did not take all that was
/// written to them. It answers `ulimit -t` (process_time.h). A standard stream that the program was
/// started without fails on the first write; no file that is opened later takes its number.
int run_program(std::string_view name, const std::function<int()>& body);

/// Keeps what is freed for what is allocated next, as far as the allocator lets itself be told: a
/// program that simulates step after step spends a tenth of its time on fresh pages otherwise.
void keep_freed_memory();

/// Writes a text and a line's end to standard error. Never throws, so that any thread and any
/// handler of an exception may call it; run_program finds out whether it was written.
void print_error(std::string_view text) noexcept;

}  // namespace shardwise
