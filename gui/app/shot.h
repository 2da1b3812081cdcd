#pragma once

#include <string>

#include "gui/app/options.h"
#include "gui/app/stage.h"
#include "gui/models/session/session.h"

namespace shardwise::view {

/// Draws until every result is in and every glyph is there: the picture of a state is one picture.
void draw_settled(Stage& stage, Session& session, ImVec2 size);

/// A picture of a session at another scale than the window's: as large as `scale` windows of `size`
/// at scale 1, in the default arrangement. What is drawn meanwhile stays as it is.
Image picture_at(Session& session, ImVec2 size, float scale, FontChoice choice);

/// Writes the picture of a session, whole or not at all. \throws IoError
void write_shot(Stage& stage, Session& session, const Options& options);

}  // namespace shardwise::view
