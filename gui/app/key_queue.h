#pragma once

#include <imgui.h>

#include <deque>

namespace shardwise::view {

/// Hands keys to ImGui in the order in which they were pressed, one a frame. A frame that takes
/// long would otherwise see a letter and the release of its Ctrl at once, and take the chord for
/// the bare letter. A field gets what is typed into it at once.
class KeyQueue {
 public:
  /// Adds a key that was pressed or released. \param modifiers  ImGuiMod_Ctrl, ImGuiMod_Shift …
  /// that were down with it
  void add_key(ImGuiKey key, bool down, ImGuiKeyChord modifiers);
  /// Adds a character that was typed. It stays between the keys it was typed between.
  void add_character(unsigned int code_point);
  /// Forgets what waits: the window is no longer the one that is typed into.
  void clear() { events_.clear(); }

  /// Feeds the input of the next frame. Before NewFrame().
  void feed(ImGuiIO& io);
  /// Whether another frame is to follow at once.
  bool waiting() const { return !events_.empty(); }

 private:
  struct Event {
    ImGuiKey key = ImGuiKey_None;  // none: a character
    bool down = false;
    ImGuiKeyChord modifiers = ImGuiKey_None;
    unsigned int code_point = 0;
  };
  std::deque<Event> events_;
};

}  // namespace shardwise::view
