#pragma once

#include <string>

#include "gui/app/options.h"
#include "gui/app/stage.h"
#include "gui/models/session.h"

namespace shardwise::view {

/// Draws until every result is in and every glyph is there: the picture of a state is one picture.
void draw_settled(Stage& stage, Session& session, ImVec2 size);

/// Writes the picture of a session, whole or not at all. \throws IoError
void write_shot(Stage& stage, Session& session, const Options& options);

}  // namespace shardwise::view
