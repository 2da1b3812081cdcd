#include "planner/spec/text/diagnostic.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardwise {
namespace {

TEST(DiagnosticText, LeavesOutWhatIsUnknown) {
  EXPECT_EQ(to_string(Diagnostic{"a.json", 3, 7, "/tp", "3 is odd", "use 2"}),
            "a.json:3:7: /tp: 3 is odd\n    use 2");
  EXPECT_EQ(to_string(Diagnostic{"a.json", 3, 0, "", "odd", ""}), "a.json:3: odd");
  EXPECT_EQ(to_string(Diagnostic{"command line", 0, 7, "--tp", "odd", ""}),
            "command line: --tp: odd");
}

TEST(DiagnosticText, EscapesAndCutsWhatAFileSays) {
  const std::string text = to_string(
      Diagnostic{"a\n.json", 0, 0, "/\x1b", std::string(1000, 'x') + "\n", "one\n    two\r"});
  EXPECT_EQ(text, "a\\n.json: /\\u001b: " + std::string(400, 'x') + "…\n    one\n    two\\u000d");
}

TEST(DiagnosticText, CountsTheProblems) {
  const Diagnostic problem{"a.json", 0, 0, "", "odd", ""};
  EXPECT_EQ(to_string(Diagnostics{problem}), "a.json: odd\n1 problem, nothing was run\n");
  EXPECT_EQ(to_string(Diagnostics{problem, problem}),
            "a.json: odd\na.json: odd\n2 problems, nothing was run\n");
}

// A Markdown file given for measurements filled three screens.
TEST(DiagnosticText, PrintsAFewAndCountsTheRest) {
  const std::string text = to_string(Diagnostics(18, {"a.json", 0, 0, "", "odd", ""}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 18);
  EXPECT_TRUE(text.ends_with("a.json: odd\n… 2 more\n18 problems, nothing was run\n")) << text;
}

TEST(DiagnosticText, GoesFromTopToBottomOfEachFile) {
  const Diagnostics problems = {{"b.json", 9, 2, "", "fourth", ""},
                                {"a.json", 1, 1, "", "fifth", ""},
                                {"b.json", 2, 7, "", "third", ""},
                                {"b.json", 2, 3, "", "first", ""},
                                {"b.json", 2, 3, "", "second", ""}};
  EXPECT_EQ(to_string(problems),
            "b.json:2:3: first\nb.json:2:3: second\nb.json:2:7: third\nb.json:9:2: fourth\n"
            "a.json:1:1: fifth\n5 problems, nothing was run\n");
}

}  // namespace
}  // namespace shardwise
