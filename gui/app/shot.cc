#include "gui/app/shot.h"

#include <implot.h>

#include "planner/files/atomic_file_set.h"

namespace shardwise::view {
namespace {

/// Glyphs arrive when they are first drawn, and what is laid out by their size a frame later.
constexpr int kFrames = 3;

}  // namespace

void draw_settled(Stage& stage, Session& session, ImVec2 size) {
  session.settle();
  for (int i = 0; i < kFrames; ++i) {
    stage.frame(session, size);
    session.settle();
  }
  stage.frame(session, size);
}

Image picture_at(Session& session, ImVec2 size, float scale, FontChoice choice) {
  ImGuiContext* const imgui = ImGui::GetCurrentContext();
  ImPlotContext* const implot = ImPlot::GetCurrentContext();
  ImGui::SetCurrentContext(nullptr);
  ImPlot::SetCurrentContext(nullptr);
  Image image;
  {
    Stage stage(choice, scale);
    const ImVec2 pixels(size.x * scale, size.y * scale);
    draw_settled(stage, session, pixels);
    image = stage.picture(session);
  }
  ImGui::SetCurrentContext(imgui);
  ImPlot::SetCurrentContext(implot);
  return image;
}

void write_shot(Stage& stage, Session& session, const Options& options) {
  draw_settled(stage, session,
               {static_cast<float>(options.width), static_cast<float>(options.height)});
  write_file(options.shot, to_png(stage.picture(session)));
}

}  // namespace shardwise::view
