#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "gui/models/commands/commands.h"

namespace shardwise::view {

/// Calls a member of the session that returns nothing, or what is wrong.
template <auto kMember, class... Arguments>
std::string call(Session& session, const Arguments&... arguments) {
  if constexpr (std::is_void_v<decltype((session.*kMember)(arguments...))>) {
    (session.*kMember)(arguments...);
    return "";
  } else {
    return (session.*kMember)(arguments...);
  }
}

/// Commands that are one member of the session: without an argument, and with it.
template <auto kMember>
std::string does(Session& session, const std::string&) {
  return call<kMember>(session);
}
template <auto kMember>
std::string with_words(Session& session, const std::string& words) {
  return call<kMember>(session, words);
}

/// The name of a file, as an argument of a template.
template <std::size_t kSize>
struct FileName {
  char text[kSize] = {};
  // NOLINTNEXTLINE(google-explicit-constructor): so that "plan.json" is one
  constexpr FileName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
};

/// A command that is one member of the session and must be given a file.
template <auto kMember, FileName kExample>
std::string with_file(Session& session, const std::string& path) {
  if (path.empty()) return std::string("name a file, as ") + kExample.text;
  return call<kMember>(session, path);
}

/// The commands by what they act on; commands() has them all, in this order.
std::span<const Command> window_commands();    // views, panels, palette, details
std::span<const Command> question_commands();  // model, cluster, job, engine and layout
std::span<const Command> table_commands();
std::span<const Command> timeline_commands();       // its range and lanes
std::span<const Command> timeline_view_commands();  // what is chosen, marked and stretched on it
std::span<const Command> mesh_commands();
std::span<const Command> scaling_commands();
std::span<const Command> file_commands();  // what is opened, and compared with
std::span<const Command> export_commands();

}  // namespace shardwise::view
