#include "planner/files/untied_page.h"

#include "planner/files/program.h"
#include "planner/spec/plan/plan_page.h"

namespace shardwise {

void tell_untied_page(const std::string& file) {
  const std::string note = untied_plan(file);
  if (!note.empty()) print_error("note: " + note);
}

}  // namespace shardwise
