#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "gui/models/compare/compare_model.h"
#include "gui/models/compare/compared.h"
#include "planner/question/correction.h"

namespace shardwise::view {

/// Comparison of the plan, and the file that is being read.
struct CompareState {
  std::shared_ptr<const Compared> other;    // null: nothing
  std::shared_ptr<const CompareView> view;  // null until they are compared
  bool shown = true;
  CompareBy by = CompareBy::kind;
  std::size_t row = 0;    // of the list, that was looked at last
  std::string looked_at;  // the operation of that row, or its name; empty: none
  std::string reading;    // the file; empty: none
  ReadSoFar read;

  /// The part of the other step that is drawn under all of the plan's; nothing: the same seconds.
  std::optional<OwnRange> own;
  OwnRange own_range(double axis) const { return own.value_or(OwnRange{0, axis}); }

  /// Comparison that views lay over their own; null where there is none or people hide it.
  const Compared* overlay() const { return shown ? other.get() : nullptr; }
  const CompareView* overlay_view() const { return shown ? view.get() : nullptr; }
};

}  // namespace shardwise::view
