#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gui/models/mesh/link_stretch.h"
#include "gui/models/mesh/mesh_facts.h"
#include "gui/models/mesh/mesh_model.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// State of the mesh workspace. It is made once the workspace was opened.
struct MeshState {
  MeshView view;
  MeshColour colour = MeshColour::stage;
  std::optional<std::int64_t> pinned;      // the rank whose groups are shown
  std::shared_ptr<const MeshFacts> facts;  // null until they are found
  std::optional<RankOrder> tried;          // an order that is dragged,
  Seconds tried_step;                      // and how long a step takes in it
  LinkStretch stretch;
};

/// Axes with more than one rank, fastest first; experts fold over the others.
std::vector<Axis> moving_axes(const Layout& layout);
/// Ranks along an axis.
std::int64_t ranks_along(const Layout& layout, Axis axis);
/// "tp-pp-dp_shard": the moving axes of a layout in an order.
std::string order_text(const Layout& layout, const RankOrder& order);
/// The order with those axes first to last where such axes are, all others in their places. The
/// words are as order_text() has them. \returns nothing where a word is no axis or comes twice
std::optional<RankOrder> read_order(const Layout& layout, const std::string& words);

}  // namespace shardwise::view
