#include "gui/app/shot.h"

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

void write_shot(Stage& stage, Session& session, const Options& options) {
  draw_settled(stage, session,
               {static_cast<float>(options.width), static_cast<float>(options.height)});
  write_file(options.shot, to_png(stage.picture(session)));
}

}  // namespace shardwise::view
