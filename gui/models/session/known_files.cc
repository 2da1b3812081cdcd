#include "gui/models/session/known_files.h"

#include <utility>

#include "planner/spec/text/one_line.h"

namespace shardwise::view {

void KnownFiles::keep(const std::vector<NamedFile>& inputs) {
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
}

void KnownFiles::read(const std::string& command, const std::string& path) {
  std::erase_if(inputs_, [&](const NamedFile& each) { return each.flag == command; });
  if (!path.empty()) inputs_.push_back({command, path});
}

std::string KnownFiles::problem_of(const std::string& path) const {
  Diagnostics problems = check_outputs({{"FILE", path}}, inputs_);
  if (problems.empty()) return "";
  problems.front().path.clear();
  return one_line({problems.front()});
}

void KnownFiles::has_plan(std::string path, Plan plan) {
  plan_file_ = std::move(path);
  plan_ = std::move(plan);
}

std::string KnownFiles::file_of(const Plan& plan) const {
  return !plan_file_.empty() && to_json(plan_) == to_json(plan) ? plan_file_ : "";
}

}  // namespace shardwise::view
