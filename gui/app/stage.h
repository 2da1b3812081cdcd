#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "gui/draw/fonts.h"
#include "gui/draw/image.h"
#include "gui/draw/probes.h"
#include "gui/models/session/session.h"
#include "gui/panels/ui.h"

struct ImGuiContext;
struct ImPlotContext;

namespace shardwise::view {

/// ImGui, ImPlot and what they need, with or without a window. One exists at a time.
class Stage {
 public:
  Stage(FontChoice choice, float scale);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Before ImGui's NewFrame(): takes over what the worker found, sets sizes and colours.
  void prepare(Session& session);
  /// Between NewFrame() and Render(): draws the session, then runs the commands that keys and
  /// panels asked for.
  void draw(Session& session);
  /// A frame without a window, of a fixed duration, with the events that were queued.
  void frame(Session& session, ImVec2 size);
  /// The last frame's pixels.
  Image picture(const Session& session) const;

  /// Puts panels where ImGui's settings say. Between frames.
  void place_panels(const std::string& settings);
  /// Where they are, in that form; the same places give the same text.
  std::string panels() const;

  const Probes& probes() const { return probes_; }
  Probes& probes() { return probes_; }
  const Fonts& fonts() const { return fonts_; }
  float scale() const { return scale_; }
  void set_scale(float scale) { scale_ = scale; }

 private:
  void save_view(Session& session) const;

  ImGuiContext* imgui_;
  ImPlotContext* implot_;
  Fonts fonts_;
  Probes probes_;
  PaletteInput palette_;
  DrawnColumns columns_;
  std::uint64_t arranged_ = 0;
  std::uint64_t fronted_ = 0;
  float scale_ = 1;
};

/// "Ctrl+Shift+Z", "?", "Down" as ImGui has keys, also by its names; ImGuiKey_None for what is
/// none.
ImGuiKeyChord parse_chord(std::string_view key);

}  // namespace shardwise::view
