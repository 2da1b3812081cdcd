#include "gui/app/key_queue.h"

namespace shardwise::view {
namespace {

bool is_modifier(ImGuiKey key) { return key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper; }

}  // namespace

void KeyQueue::add_key(ImGuiKey key, bool down, ImGuiKeyChord modifiers) {
  if (key == ImGuiKey_None) return;
  events_.push_back({key, down, modifiers, 0});
}

void KeyQueue::add_character(unsigned int code_point) {
  events_.push_back({ImGuiKey_None, false, ImGuiKey_None, code_point});
}

void KeyQueue::feed(ImGuiIO& io) {
  bool full = false;
  while (!events_.empty()) {
    const Event next = events_.front();
    if (next.key == ImGuiKey_None) {
      events_.pop_front();
      io.AddInputCharacter(next.code_point);
      continue;
    }
    // The characters of a press follow it; any other key is the next frame's.
    if (full) return;
    events_.pop_front();
    for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt, ImGuiMod_Super}) {
      io.AddKeyEvent(modifier, (next.modifiers & modifier) != 0);
    }
    io.AddKeyEvent(next.key, next.down);
    const bool is_text = io.WantTextInput && (next.modifiers & ImGuiMod_Ctrl) == 0;
    full = !is_modifier(next.key) && !is_text;
  }
}

}  // namespace shardwise::view
