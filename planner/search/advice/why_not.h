#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/search.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// Why the best layout with some values is not the best of all.
struct WhyNot {
  enum class Answer : std::uint8_t {
    illegal,       // no layout has these values: `reasons`, for the best layout with them put in
    does_not_fit,  // `other` is the smallest layout that has them
    slower,        // `other` is the best layout that has them
    best,          // the best layout has them
  };
  Answer answer = Answer::best;
  Diagnostics reasons;
  StepReport winner;
  StepReport other;          // empty when illegal
  std::int64_t layouts = 0;  // legal ones that have the values
  std::int64_t ranked = 0;   // of these, ones that fit
};

/// `layout` with the values put in, and with the data parallelism that the GPUs then leave.
/// \pre the values are those of set_field
Layout with_values(Layout layout, std::int64_t gpus,
                   const std::vector<std::pair<std::string, std::string>>& values);

/// \param request  as for search(); `winner` is the first of its result
/// \param values   field, value: "tp", "4"
/// \returns the answer, or what is wrong with `values`
Result<WhyNot> why_not(const SearchRequest& request, const Candidate& winner,
                       const std::vector<std::pair<std::string, std::string>>& values);

/// Categories of memory by how much more `other` has of them at its fullest than `winner`, largest
/// first; those that grow only.
std::vector<std::pair<MemoryCategory, Bytes>> memory_growth(const StepReport& winner,
                                                            const StepReport& other);

}  // namespace shardwise
