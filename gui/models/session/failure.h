#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "planner/spec/text/diagnostic.h"
#include "planner/spec/text/error.h"
#include "planner/spec/text/one_line.h"

namespace shardwise::view {

/// Why a file was not read or written, in one line; empty: it was.
struct Failure {
  std::string message;
  bool by_system = false;  // which would not read or write; otherwise what was asked is wrong

  explicit operator bool() const { return !message.empty(); }
};

/// Read value, or why nothing was read.
template <class Read>
struct Tried {
  std::optional<Read> read;
  Failure failure;
};

template <class Read>
Tried<Read> try_to(const std::function<Result<Read>()>& job) {
  try {
    Result<Read> read = job();
    if (!read) return {std::nullopt, {one_line(read.problems()), false}};
    return {*std::move(read), {}};
  } catch (const IoError& error) {
    return {std::nullopt, {error.what(), true}};
  }
}

}  // namespace shardwise::view
