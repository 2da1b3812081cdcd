#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/helpful_changes.h"
#include "gui/models/question/question_limits.h"
#include "planner/score/published.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report.h"

namespace shardwise::view {

/// Numbers that others are compared with.
struct Baseline {
  StepReport estimated;
  std::shared_ptr<const StepReport> simulated;  // null where it was not known
};

/// Where the layout was before a drag.
struct Ghost {
  Baseline numbers;           // of then
  std::size_t row = 0;        // of the answer; rows.size() where it has none
  bool same_question = true;  // else its numbers are of another
};

/// Why the best layout has not these values.
struct TypedWhy {
  std::string asked;                // "tp=4,pp=2"; empty: nothing was
  std::string text;                 // as plan --why-not prints it; empty while it is searched
  std::optional<StepReport> other;  // the best layout that has them, or the smallest
};

/// Change that makes a layout fit, once it was asked for.
struct RowFix {
  Layout layout;
  std::string text;  // "--recompute=full: 61.2 GiB, 1.32 s a step"
};

/// Offers of the question's menus.
struct Catalogue {
  std::vector<Choice> models;
  std::vector<Choice> clusters;
  std::vector<Choice> engines;
  bool known = false;
};

/// Changes that would help the question most.
struct Levers {
  bool asked = false;  // somebody looks at it
  bool known = false;
  std::string trying;   // "trying 128 GPUs", until it is known
  std::string problem;  // why there are none
  /// First the best layout of the question as it is, then changes, the most helpful first.
  std::vector<sim::HelpfulChange> rows;
};

/// State of the explore workspace beside the answer and the selection.
struct ExploreState {
  QuestionLimits limits;
  std::optional<Ghost> ghost;
  std::optional<Baseline> pinned;          // that the summary compares with
  std::uint64_t moves = 0;                 // how often the selection moved: the table follows it
  bool log_axes = false;                   // of memory and time
  std::bitset<kMemoryGroups> open_groups;  // whose categories are listed
  TypedWhy why;
  Levers levers;
  std::optional<RowFix> fix;
  std::string way_out;  // of a question that nothing fits, once it is known
  Catalogue catalogue;
  std::shared_ptr<const std::vector<PublishedFigure>> published;  // all; null until they are known
  std::vector<PublishedFigure> nearest;                           // to the plan
  double png_scale = 0;  // of the picture that is asked for; 0: the window's
  std::string copied;    // for the clipboard; who has one takes it

  /// Baseline of the selection's numbers: the pin, or else the ghost.
  const Baseline* baseline() const {
    if (pinned) return &*pinned;
    return ghost ? &ghost->numbers : nullptr;
  }
};

}  // namespace shardwise::view
