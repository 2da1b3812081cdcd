// A page is refused, or gives the text of one plan: where that is a plan, the page that is made of
// it holds the same plan.

#include <string>
#include <string_view>

#include "planner/spec/plan/plan_page.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view page(reinterpret_cast<const char*>(data), size);
  const auto text =
      read_input(page, [](std::string_view p) { return plan_in_page(p, "fuzz.html"); });
  if (!text) return 0;
  SHARDWISE_CHECK(text->size() <= page.size(), "the plan is longer than its page");
  // A browser passes over an end tag only behind <!--.
  SHARDWISE_CHECK(text->find("</script>") >= text->find("<!--"), *text);
  const auto json =
      read_input(*text, [](const std::string& t) { return parse_json(t, "fuzz.html"); });
  if (!json) return 0;
  const auto plan =
      read_input(*json, [](const JsonValue& v) { return plan_from_json(v, "fuzz.html"); });
  if (!plan) return 0;
  const std::string made = with_page_digest(plan_digest_element(*plan) + "\n" +
                                            plan_element(*plan) + std::string(kPageDigestElement));
  const Result<std::string> again = plan_in_page(made, "again.html");
  SHARDWISE_CHECK(again.ok(), to_string(again.problems()));
  const Result<JsonValue> value = parse_json(*again, "again.html");
  SHARDWISE_CHECK(value.ok(), to_string(value.problems()));
  const Result<Plan> same = plan_from_json(*value, "again.html");
  SHARDWISE_CHECK(same.ok() && to_json(*same) == to_json(*plan), *again);
  return 0;
}
